package spec

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// importable are the packages that a cell may import.
var importable = []string{Module + "/kernel/attn/...", Module + "/kernel/wire/...", Module + "/reference/...", Module + "/viz/..."}

// clone is a checkout of this module, where installations are made from.
type clone struct {
	root      string
	goCommand string
}

// goPackage is what go list says of a package.
type goPackage struct {
	ImportPath, Dir                                                       string
	Standard                                                              bool
	GoFiles, CgoFiles, IgnoredGoFiles, SFiles, HFiles, CFiles, EmbedFiles []string
	Module                                                                *goModule
}

type goModule struct {
	Path, Version, GoVersion string
	Main                     bool
}

// writeSource puts into src the module as cells import it, and into mod a module proxy directory with its dependencies.
func (c clone) writeSource(ctx context.Context, src, mod string) error {
	packages, err := c.list(ctx)
	if err != nil {
		return err
	}
	var main *goModule
	deps := map[string]string{} // path -> version
	for _, p := range packages {
		switch {
		case p.Standard || p.Module == nil:
		case p.Module.Main:
			main = p.Module
			if err := c.copyPackage(p, src); err != nil {
				return fmt.Errorf("copy %s: %w", p.ImportPath, err)
			}
		default:
			deps[p.Module.Path] = p.Module.Version
		}
	}
	if main == nil {
		return fmt.Errorf("%s has none of %s", c.root, strings.Join(importable, " "))
	}
	if err := c.writeModFiles(src, main, deps); err != nil {
		return err
	}
	return c.writeProxy(ctx, src, mod, deps)
}

// list returns the importable packages and all that they depend on.
func (c clone) list(ctx context.Context) ([]goPackage, error) {
	out, err := c.run(ctx, c.root, append([]string{"list", "-deps", "-json"}, importable...)...)
	if err != nil {
		return nil, err
	}
	return decodeAll[goPackage](out)
}

func (c clone) copyPackage(p goPackage, src string) error {
	for _, name := range slices.Concat(p.GoFiles, p.CgoFiles, p.IgnoredGoFiles, p.SFiles, p.HFiles, p.CFiles, p.EmbedFiles) {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		rel, err := filepath.Rel(c.root, filepath.Join(p.Dir, name))
		if err != nil {
			return err
		}
		if err := copyFile(filepath.Join(c.root, rel), filepath.Join(src, rel)); err != nil {
			return err
		}
	}
	return nil
}

// writeModFiles writes a go.mod that requires only deps, at the clone's versions, and the go.sum that goes with it.
func (c clone) writeModFiles(src string, main *goModule, deps map[string]string) error {
	var text strings.Builder
	fmt.Fprintf(&text, "module %s\n\ngo %s\n\nrequire (\n", main.Path, main.GoVersion)
	for _, path := range sortedKeys(deps) {
		fmt.Fprintf(&text, "\t%s %s\n", path, deps[path])
	}
	text.WriteString(")\n")
	if err := writeText(filepath.Join(src, "go.mod"), text.String()); err != nil {
		return err
	}
	return copyFile(filepath.Join(c.root, "go.sum"), filepath.Join(src, "go.sum"))
}

// writeProxy copies from the module cache what building src takes: the modules in deps, and the go.mod of each module
// that they require in turn. go.sum is cut down to these.
func (c clone) writeProxy(ctx context.Context, src, mod string, deps map[string]string) error {
	graph, err := c.run(ctx, src, "mod", "graph")
	if err != nil {
		return err
	}
	nodes := map[string]bool{} // path@version
	for _, node := range strings.Fields(string(graph)) {
		if path, _, ok := strings.Cut(node, "@"); ok && path != "go" && path != "toolchain" {
			nodes[node] = true
		}
	}
	if err := os.MkdirAll(mod, 0o755); err != nil {
		return err
	}
	out, err := c.run(ctx, c.root, "env", "GOMODCACHE")
	if err != nil {
		return err
	}
	cache := filepath.Join(strings.TrimSpace(string(out)), "cache", "download")
	for _, node := range sortedKeys(nodes) {
		path, version, _ := strings.Cut(node, "@")
		file := filepath.Join(escapePath(path), "@v", escapePath(version)+".mod")
		if err := copyFile(filepath.Join(cache, file), filepath.Join(mod, file)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	if err := c.copyModules(ctx, cache, mod, deps); err != nil {
		return err
	}
	return trimSums(filepath.Join(src, "go.sum"), nodes, deps)
}

// copyModules copies the modules themselves.
func (c clone) copyModules(ctx context.Context, cache, mod string, deps map[string]string) error {
	if len(deps) == 0 {
		return nil
	}
	args := []string{"mod", "download", "-json"}
	for _, path := range sortedKeys(deps) {
		args = append(args, path+"@"+deps[path])
	}
	out, err := c.run(ctx, c.root, args...)
	if err != nil {
		return err
	}
	downloads, err := decodeAll[struct{ Version, Info, GoMod, Zip string }](out)
	if err != nil {
		return err
	}
	for _, d := range downloads {
		for _, file := range []string{d.Info, d.GoMod, d.Zip} {
			rel, err := filepath.Rel(cache, file)
			if err != nil {
				return err
			}
			if err := copyFile(file, filepath.Join(mod, rel)); err != nil {
				return err
			}
		}
		rel, err := filepath.Rel(cache, filepath.Dir(d.Zip))
		if err != nil {
			return err
		}
		if err := writeText(filepath.Join(mod, rel, "list"), d.Version+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// trimSums keeps of a go.sum the modules in deps and the go.mod files in nodes.
func trimSums(file string, nodes map[string]bool, deps map[string]string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var kept strings.Builder
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) != 3 {
			continue
		}
		version, isMod := strings.CutSuffix(fields[1], "/go.mod")
		if isMod && nodes[fields[0]+"@"+version] || deps[fields[0]] == version {
			kept.WriteString(line)
		}
	}
	return writeText(file, kept.String())
}

// run runs the go command, without what could make it look elsewhere.
func (c clone) run(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, c.goCommand, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=", "CGO_ENABLED=0", "PWD="+dir)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, bytes.TrimSpace(errs.Bytes()))
	}
	return out.Bytes(), nil
}

func decodeAll[T any](text []byte) ([]T, error) {
	var all []T
	for dec := json.NewDecoder(bytes.NewReader(text)); ; {
		var one T
		err := dec.Decode(&one)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
}

func writeText(path, text string) error {
	return writeFile(path, 0o644, func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	})
}

// escapePath spells a module path or version as the module cache does: an exclamation mark for each capital.
func escapePath(path string) string {
	var out strings.Builder
	for _, r := range path {
		if r >= 'A' && r <= 'Z' {
			out.WriteByte('!')
			r += 'a' - 'A'
		}
		out.WriteRune(r)
	}
	return out.String()
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
