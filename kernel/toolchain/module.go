package toolchain

import (
	"bytes"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"

	"github.com/attnb/attnb/kernel/spec"
)

// modInit runs `go mod init`, then makes this module and what it needs part of the cell's module.
func modInit(home spec.Home, real string, args, env []string, dir string) int {
	if code := run(real, args, env); code != 0 {
		return code
	}
	if err := addModule(home, dir); err != nil {
		return fail("cannot add %s to the cell's go.mod: %v", spec.Module, err)
	}
	return 0
}

// addModule adds the requirements and checksums that importing this module takes to the module in dir.
func addModule(home spec.Home, dir string) error {
	ours, err := readModule(home.Src())
	if err != nil {
		return err
	}
	cell, err := readModule(dir)
	if err != nil {
		return err
	}
	if ours.Go != nil {
		if err := cell.AddGoStmt(ours.Go.Version); err != nil {
			return err
		}
	}
	const local = "v0.0.0" // any version: the replacement has none
	cell.AddNewRequire(spec.Module, local, false)
	for _, r := range ours.Require {
		cell.AddNewRequire(r.Mod.Path, r.Mod.Version, true)
	}
	if err := cell.AddReplace(spec.Module, "", home.Src(), ""); err != nil {
		return err
	}
	cell.Cleanup()
	text, err := cell.Format()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), text, 0o644); err != nil {
		return err
	}
	return addSums(filepath.Join(home.Src(), "go.sum"), filepath.Join(dir, "go.sum"))
}

// addSums appends what from has and to lacks: after a %reset, to holds what the user's own modules need.
func addSums(from, to string) error {
	sums, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	old, err := os.ReadFile(to)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	if bytes.Contains(old, sums) {
		return nil
	}
	return os.WriteFile(to, append(old, sums...), 0o644)
}

func readModule(dir string) (*modfile.File, error) {
	path := filepath.Join(dir, "go.mod")
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return modfile.Parse(path, text, nil)
}

// satisfied says whether all that the cell imports is there without a download that go get would have to find: the
// standard library's, or a package of a required module. When in doubt, no.
func satisfied(dir, goroot string) bool {
	cell, err := readModule(dir)
	if err != nil || goroot == "" {
		return false
	}
	imports, err := imported(dir)
	if err != nil {
		return false
	}
	for _, path := range imports {
		if path != "C" && !exists(filepath.Join(goroot, "src", path)) && !required(cell, dir, path) {
			return false
		}
	}
	return true
}

// imported lists what the Go files in dir import.
func imported(dir string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			return nil, err
		}
		for _, spec := range file.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return nil, fmt.Errorf("import %s: %w", spec.Path.Value, err)
			}
			paths = append(paths, path)
		}
	}
	return paths, nil
}

// required says whether a module that go.mod requires holds the package at path, as far as one can see.
func required(cell *modfile.File, dir, path string) bool {
	var owner module.Version
	for _, r := range cell.Require {
		if within(path, r.Mod.Path) && len(r.Mod.Path) > len(owner.Path) {
			owner = r.Mod
		}
	}
	if owner.Path == "" {
		return false
	}
	root := moduleRoot(cell, dir, owner)
	if root == "" {
		return false
	}
	// A module that is required but not unpacked yet is fetched by the build. One that is there must have the package.
	return !exists(root) || exists(filepath.Join(root, strings.TrimPrefix(path, owner.Path)))
}

func within(path, root string) bool {
	rest, ok := strings.CutPrefix(path, root)
	return ok && (rest == "" || rest[0] == '/')
}

// moduleRoot is the directory where the files of a required module are, or would be.
func moduleRoot(cell *modfile.File, dir string, m module.Version) string {
	for _, r := range cell.Replace {
		if r.Old.Path != m.Path || r.Old.Version != "" && r.Old.Version != m.Version {
			continue
		}
		if r.New.Version == "" {
			if filepath.IsAbs(r.New.Path) {
				return r.New.Path
			}
			return filepath.Join(dir, r.New.Path)
		}
		m = r.New
		break
	}
	escapedPath, err := module.EscapePath(m.Path)
	if err != nil {
		return ""
	}
	escapedVersion, err := module.EscapeVersion(m.Version)
	if err != nil {
		return ""
	}
	cache := modCache()
	if cache == "" {
		return ""
	}
	return filepath.Join(cache, escapedPath+"@"+escapedVersion)
}

func modCache() string {
	if dir := os.Getenv("GOMODCACHE"); dir != "" {
		return dir
	}
	if list := filepath.SplitList(os.Getenv("GOPATH")); len(list) > 0 && list[0] != "" {
		return filepath.Join(list[0], "pkg", "mod")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(home, "go", "pkg", "mod")
}
