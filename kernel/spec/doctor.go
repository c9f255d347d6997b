package spec

import (
	"context"
	"debug/buildinfo"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
)

// State is how a finding turned out.
type State uint8

const (
	Good   State = iota // there and in order
	Absent              // not there; attnb works without it
	Faulty              // attnb does not work
)

func (s State) String() string { return [...]string{"ok", "absent", "FAULT"}[s] }

// Finding is one thing that the doctor looked at.
type Finding struct {
	Name   string
	State  State
	Detail string // what is there, or what is wrong
	Cost   string // what its absence costs, or what to do; empty when Good
}

// Examine looks at an installation and at what it needs of the machine, and runs a cell.
func Examine(ctx context.Context, h Home) []Finding {
	findings := []Finding{{Name: "home", Detail: h.Root}, examineGo(ctx, h)}
	for _, name := range binaries {
		findings = append(findings, examineBinary(h.bin(name)))
	}
	findings = append(findings, examineKernelspecs(h)...)
	findings = append(findings, examineJupyter(ctx)...)
	findings = append(findings, examineRuntimeDir(), examineCache(ctx, h), examineRecipes())
	return append(findings, examineCell(ctx, h))
}

// Print writes findings as a table and says whether attnb works.
func Print(out io.Writer, findings []Finding) bool {
	works := true
	table := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	for _, f := range findings {
		works = works && f.State != Faulty
		fmt.Fprintf(table, "%s\t%s\t%s\n", f.State, f.Name, f.Detail)
		if f.Cost != "" {
			fmt.Fprintf(table, "\t\t-> %s\n", f.Cost)
		}
	}
	_ = table.Flush()
	return works
}

func examineGo(ctx context.Context, h Home) Finding {
	f := Finding{Name: "go"}
	cmd := exec.CommandContext(ctx, filepath.Join(h.PathDir(), "go"), "version")
	text, err := cmd.CombinedOutput()
	f.Detail = strings.TrimSpace(string(text))
	if err != nil {
		f.State, f.Cost = Faulty, "cells cannot be built: install Go, or run ./install.sh in a clone, which brings it along"
		return f
	}
	if root := h.GoRoot(); root != "" {
		f.Detail += ", the installation's own"
	}
	return f
}

var binaryCosts = map[string]string{
	"attnb":      "Jupyter cannot start the kernel",
	"attnb-cell": "cells cannot be built",
	"gopls":      "no completion and no tooltips",
	"goimports":  "cells cannot be run: gonb completes their imports with it",
	"gonb":       "cells cannot be run",
}

func examineBinary(path string) Finding {
	name := filepath.Base(path)
	f := Finding{Name: name}
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		f.State, f.Detail, f.Cost = Faulty, err.Error(), binaryCosts[name]
		if name == "gopls" {
			f.State = Absent
		}
		return f
	}
	f.Detail = fmt.Sprintf("%s %s, built by %s", info.Main.Path, info.Main.Version, info.GoVersion)
	if info.Main.Path == "" || info.Path != "" && !within(info.Path, info.Main.Path) {
		// Built as a tool of another module: the version stands with the dependencies.
		for _, dep := range info.Deps {
			if within(info.Path, dep.Path) {
				f.Detail = fmt.Sprintf("%s %s, built by %s", dep.Path, dep.Version, info.GoVersion)
			}
		}
	}
	return f
}

func within(path, root string) bool {
	rest, ok := strings.CutPrefix(path, root)
	return ok && (rest == "" || rest[0] == '/')
}

// kernelDirs is where Jupyter looks for kernelspecs, in its order, and where the installation put its own.
func kernelDirs(h Home) []string {
	var roots []string
	roots = append(roots, filepath.SplitList(os.Getenv("JUPYTER_PATH"))...)
	if dir, err := jupyterDataDir(); err == nil {
		roots = append(roots, dir)
	}
	if prefix, err := sysPrefix(); err == nil {
		roots = append(roots, filepath.Join(prefix, "share", "jupyter"))
	}
	roots = append(roots, "/usr/local/share/jupyter", "/usr/share/jupyter", filepath.Join(filepath.Dir(h.Root), "jupyter"))
	var dirs []string
	for _, root := range roots {
		if dir := filepath.Join(root, "kernels"); !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

func examineKernelspecs(h Home) []Finding {
	var findings []Finding
	var looked []string
	for _, dir := range kernelDirs(h) {
		looked = append(looked, dir)
		spec, err := readKernelspec(filepath.Join(dir, kernelName))
		if os.IsNotExist(err) {
			continue
		}
		f := Finding{Name: "kernelspec", Detail: filepath.Join(dir, kernelName)}
		switch {
		case err != nil || len(spec.Argv) == 0:
			f.State, f.Detail, f.Cost = Faulty, fmt.Sprintf("%s cannot be read: %v", f.Detail, err), "`attnb install` writes it again"
		case spec.Argv[0] == h.Attnb():
			f.Detail += ", of this installation"
		default:
			f.Detail += " starts " + spec.Argv[0]
			if _, err := os.Stat(spec.Argv[0]); err != nil {
				f.State, f.Cost = Faulty, "that executable is gone: `attnb install` writes the kernelspec again"
			}
		}
		findings = append(findings, f)
	}
	if findings == nil {
		return []Finding{{
			Name: "kernelspec", State: Absent, Detail: "none in " + strings.Join(looked, ", "),
			Cost: "Jupyter started here does not show attnb: start the Jupyter of the environment that it is installed in, or `attnb install --user`",
		}}
	}
	return findings
}

// maxSocketDir leaves room for attnb-UID-RANDOM/socket within the 108 bytes of a socket's address.
const maxSocketDir = 60

func examineRuntimeDir() Finding {
	dir := os.Getenv("XDG_RUNTIME_DIR")
	if info, err := os.Stat(dir); dir == "" || err != nil || !info.IsDir() || len(dir) > maxSocketDir {
		dir = "/tmp"
	}
	f := Finding{Name: "socket directory", Detail: dir}
	tmp, err := os.MkdirTemp(dir, "attnb-doctor-*")
	if err != nil {
		f.State, f.Detail, f.Cost = Faulty, err.Error(), "a kernel cannot start: give a directory that you can write as XDG_RUNTIME_DIR"
		return f
	}
	_ = os.Remove(tmp)
	return f
}

func examineCache(ctx context.Context, h Home) Finding {
	f := Finding{Name: "build cache"}
	out, err := exec.CommandContext(ctx, filepath.Join(h.PathDir(), "go"), "env", "GOCACHE").Output()
	f.Detail = strings.TrimSpace(string(out))
	if err != nil || f.Detail == "" || f.Detail == "off" {
		f.State, f.Detail, f.Cost = Faulty, "go has none", "cells cannot be built: set HOME or GOCACHE"
	}
	return f
}

func examineRecipes() Finding {
	f := Finding{Name: "recipes of cells", Detail: Recipes()}
	var err error
	if f.Detail == "" {
		f.Detail = "no cache directory of the user's"
	} else if err = os.MkdirAll(f.Detail, 0o700); err == nil {
		var probe *os.File
		if probe, err = os.CreateTemp(f.Detail, "doctor-*"); err == nil {
			probe.Close()
			_ = os.Remove(probe.Name())
		}
	}
	if err != nil {
		f.Detail = err.Error()
	}
	if err != nil || Recipes() == "" {
		f.State, f.Cost = Absent, "each cell takes a few tenths of a second longer to build: give a directory that you can write as XDG_CACHE_HOME"
	}
	return f
}

func examineCell(ctx context.Context, h Home) Finding {
	f := Finding{Name: "a cell"}
	took, err := SelfTest(ctx, h)
	if err != nil {
		f.State, f.Detail, f.Cost = Faulty, err.Error(), "cells cannot be built and run: see the lines above"
		return f
	}
	f.Detail = fmt.Sprintf("importing all of attnb: built and run in %.2f s", took.Seconds())
	return f
}
