package spec

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// binaries are what an installation's bin holds.
var binaries = []string{"attnb", "attnb-cell", "gonb", "gopls", "goimports"}

// Options say what to install, and where.
type Options struct {
	Place     Place
	Origin    string    // root of a clone with its bin filled, or of another installation; "": that of the running executable
	Toolchain string    // root of a Go toolchain to bring along; "": the machine has one
	Out       io.Writer // told each file and directory that is written
}

// Install makes an installation and its kernelspec, then builds and runs a cell in it, which also fills the build
// cache that cells use.
func Install(ctx context.Context, o Options) error {
	origin := o.Origin
	if origin == "" {
		exe, err := executable()
		if err != nil {
			return err
		}
		origin = filepath.Dir(filepath.Dir(exe))
	}
	say := report{o.Out}
	home := o.Place.Home
	if origin != home.Root {
		if err := fillHome(ctx, origin, home, o.Toolchain, say); err != nil {
			return fmt.Errorf("spec: install in %s: %w", home.Root, err)
		}
	}
	if err := writeKernelspec(o.Place, say); err != nil {
		return fmt.Errorf("spec: install the kernelspec in %s: %w", o.Place.Kernelspec(), err)
	}
	took, err := SelfTest(ctx, home)
	if err != nil {
		return err
	}
	fmt.Fprintf(o.Out, "  a cell importing all of attnb was built and run in %.1f s: the build cache is warm\n", took.Seconds())
	return nil
}

func fillHome(ctx context.Context, origin string, home Home, toolchain string, say report) error {
	from := Home{Root: origin}
	// First what can fail. src and mod are replaced together, nearly; mod is only asked for what is new.
	err := replaceTree(home.Mod(), func(mod string) error {
		return replaceTree(home.Src(), func(src string) error { return fillSource(ctx, from, src, mod) })
	})
	if err != nil {
		return err
	}
	say.wrote(home.Src() + string(filepath.Separator))
	say.wrote(home.Mod() + string(filepath.Separator))

	for _, name := range binaries {
		if err := copyFile(from.bin(name), home.bin(name)); err != nil {
			return err
		}
		say.wrote(home.bin(name))
	}
	for _, name := range standIns {
		if err := linkStandIn(home, name); err != nil {
			return err
		}
		say.wrote(filepath.Join(home.PathDir(), name))
	}

	if toolchain == "" {
		toolchain = from.GoRoot()
	}
	if toolchain == "" {
		return removeTree(filepath.Join(home.Root, "go"), say)
	}
	root := filepath.Join(home.Root, "go")
	if err := replaceTree(root, func(tmp string) error { return copyTree(toolchain, tmp, true) }); err != nil {
		return err
	}
	say.wrote(root + string(filepath.Separator))
	return nil
}

// standIns are the names by which gonb calls attnb-cell.
var standIns = []string{"go", "goimports"}

func linkStandIn(home Home, name string) error {
	link := filepath.Join(home.PathDir(), name)
	if err := os.MkdirAll(home.PathDir(), 0o755); err != nil {
		return err
	}
	if err := os.Remove(link); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.Symlink(filepath.Join("..", filepath.Base(home.Cell())), link)
}

// fillSource fills src and mod from another installation, or makes them from a clone.
func fillSource(ctx context.Context, from Home, src, mod string) error {
	if _, err := At(from.Root); err == nil {
		return errors.Join(copyTree(from.Src(), src, false), copyTree(from.Mod(), mod, false))
	}
	text, err := os.ReadFile(filepath.Join(from.Root, "go.mod"))
	if err != nil || !strings.HasPrefix(string(text), "module "+Module+"\n") {
		return fmt.Errorf("%s is neither an installation nor a clone of %s", from.Root, Module)
	}
	goCommand, err := exec.LookPath("go")
	if err != nil {
		return fmt.Errorf("installing from a clone takes the go command: %w", err)
	}
	return clone{root: from.Root, goCommand: goCommand}.writeSource(ctx, src, mod)
}

// kernelJSON is Jupyter's kernel.json.
type kernelJSON struct {
	Argv          []string        `json:"argv"`
	DisplayName   string          `json:"display_name"`
	Language      string          `json:"language"`
	InterruptMode string          `json:"interrupt_mode"`
	Metadata      map[string]bool `json:"metadata"`
}

func writeKernelspec(p Place, say report) error {
	spec, err := json.MarshalIndent(kernelJSON{
		Argv:          []string{p.Home.Attnb(), "kernel", "{connection_file}"},
		DisplayName:   "Go (attnb)",
		Language:      "go",
		InterruptMode: "message",
		Metadata:      map[string]bool{"debugger": false},
	}, "", " ")
	if err != nil {
		return err
	}
	text := func(s string) func(io.Writer) error {
		return func(w io.Writer) error { _, err := io.WriteString(w, s); return err }
	}
	for _, file := range []struct {
		name string
		fill func(io.Writer) error
	}{
		{"kernel.json", text(string(spec) + "\n")},
		{"logo-64x64.png", writeLogoPNG},
		{"logo-svg.svg", text(logoSVG())},
	} {
		path := filepath.Join(p.Kernelspec(), file.name)
		if err := writeFile(path, 0o644, file.fill); err != nil {
			return err
		}
		say.wrote(path)
	}
	return nil
}

// readKernelspec returns the kernelspec in a directory.
func readKernelspec(dir string) (kernelJSON, error) {
	var spec kernelJSON
	text, err := os.ReadFile(filepath.Join(dir, "kernel.json"))
	if err != nil {
		return spec, err
	}
	return spec, json.Unmarshal(text, &spec)
}

// Uninstall removes an installation and its kernelspec, and nothing that is not ours.
func Uninstall(p Place, out io.Writer) error {
	say := report{out}
	spec, err := readKernelspec(p.Kernelspec())
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return fmt.Errorf("spec: uninstall %s: %w", p.Kernelspec(), err)
	case len(spec.Argv) == 0 || spec.Argv[0] != p.Home.Attnb():
		return fmt.Errorf("spec: %s belongs to another installation: it stays", p.Kernelspec())
	default:
		if err := removeTree(p.Kernelspec(), say); err != nil {
			return err
		}
	}
	if _, err := os.Stat(p.Home.Root); errors.Is(err, os.ErrNotExist) {
		fmt.Fprintf(out, "  nothing is installed in %s\n", p.Home.Root)
		return nil
	}
	if _, err := os.Stat(p.Home.Cell()); err != nil {
		return fmt.Errorf("spec: uninstall: %w", &NoHomeError{Root: p.Home.Root, Missing: p.Home.Cell()})
	}
	if recipes := Recipes(); recipes != "" {
		if err := removeTree(recipes, say); err != nil {
			return err
		}
		_ = os.Remove(filepath.Dir(recipes)) // when nothing else is in it
	}
	return removeTree(p.Home.Root, say)
}

func removeTree(dir string, say report) error {
	if _, err := os.Lstat(dir); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	say.removed(dir)
	return nil
}
