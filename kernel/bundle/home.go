package bundle

import (
	"context"
	"debug/buildinfo"
	"debug/elf"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
	"golang.org/x/mod/sumdb/dirhash"

	"github.com/attnb/attnb/kernel/spec"
)

// whole is the module that a bundle holds all of, for cells that import more of it than this module does.
const whole = "gonum.org/v1/gonum"

// addHome adds an installation without its toolchain and the modules that it proxies, and with gopls only when asked.
func (a archive) addHome(name string, home spec.Home, gopls bool) error {
	return a.addTree(name, home.Root, func(rel string, _ bool) bool {
		return rel != "go" && (gopls || rel != "bin/gopls") && path.Ext(rel) != ".zip"
	})
}

// addModules adds a module cache with the modules of an installation unpacked: without their tests, which are most of them,
// and without the packages that nothing of ours needs.
func (a archive) addModules(ctx context.Context, name string, home spec.Home, goroot, scratch string) error {
	g := goCommand{root: goroot, dir: home.Src(), cache: filepath.Join(scratch, "gocache")}
	list, err := g.run(ctx, "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", "./...")
	if err != nil {
		return err
	}
	needed := map[string]bool{}
	for _, p := range strings.Fields(list) {
		needed[p] = true
	}
	return filepath.WalkDir(home.Mod(), func(file string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(file) != ".zip" {
			return err
		}
		return a.addModule(name, home.Mod(), file, needed)
	})
}

func (a archive) addModule(name, proxy, file string, needed map[string]bool) error {
	rel, err := filepath.Rel(proxy, file)
	if err != nil {
		return err
	}
	escaped, version, ok := strings.Cut(filepath.ToSlash(rel), "/@v/")
	version = strings.TrimSuffix(version, ".zip")
	modulePath, err := module.UnescapePath(escaped)
	if err != nil || !ok {
		return fmt.Errorf("%s is not where a module proxy has its files", file)
	}
	sum, err := dirhash.HashZip(file, dirhash.Hash1)
	if err != nil {
		return err
	}
	a.add(path.Join(name, "cache/download", escaped, "@v", version+".ziphash"), []byte(sum))
	return a.addZip(file, func(member string) string {
		rest, ok := strings.CutPrefix(member, modulePath+"@"+version+"/")
		if !ok || strings.HasSuffix(rest, "_test.go") || strings.Contains("/"+rest, "/testdata/") {
			return ""
		}
		dir, base := path.Split(rest)
		if modulePath != whole && dir != "" && !needed[path.Join(modulePath, dir)] && path.Ext(base) == ".go" {
			return ""
		}
		switch path.Ext(base) {
		case ".go", ".s", ".h", ".mod", ".js", ".css", ".html", ".tpl", ".ttf":
		default:
			if !strings.HasPrefix(base, "LICENSE") && !strings.HasPrefix(base, "PATENTS") {
				return ""
			}
		}
		return path.Join(name, escaped+"@"+version, rest)
	})
}

// glibc returns the oldest version of the C library with which the programs run, "" for any.
func glibc(programs ...string) (string, error) {
	oldest := ""
	for _, program := range programs {
		f, err := elf.Open(program)
		if err != nil {
			return "", fmt.Errorf("%s: %w", program, err)
		}
		symbols, err := f.ImportedSymbols()
		_ = f.Close()
		if err != nil {
			continue // not linked with any library
		}
		for _, s := range symbols {
			v, ok := strings.CutPrefix(s.Version, "GLIBC_")
			if ok && (oldest == "" || semver.Compare("v"+v, "v"+oldest) > 0) {
				oldest = v
			}
		}
	}
	return oldest, nil
}

// hasCUDA says whether a program was built with the CUDA backend.
func hasCUDA(program string) (bool, error) {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return false, fmt.Errorf("%s: %w", program, err)
	}
	for _, s := range info.Settings {
		if s.Key == "-tags" {
			return strings.Contains(","+s.Value+",", ",cuda,"), nil
		}
	}
	return false, nil
}
