// Package spec knows where attnb is installed: the home of an installation, the kernelspec that points Jupyter to it,
// and how both come and go.
package spec

import (
	"fmt"
	"os"
	"path/filepath"
)

// Module is the path of this module, as cells import it.
const Module = "github.com/attnb/attnb"

// Home is one installation: a directory with everything that a kernel needs to run. The clone is not needed.
//
//	bin/attnb, attnb-cell, gonb, gopls, goimports
//	bin/path/go, goimports -> ../attnb-cell; bin/path goes first on gonb's PATH
//	src/            the module as cells import it
//	mod/            a module proxy directory with what src needs, so that cells build offline
//	go/             a Go toolchain, only where the machine had none
type Home struct{ Root string }

// NoHomeError says that an executable does not stand in an installation.
type NoHomeError struct{ Root, Missing string }

func (e *NoHomeError) Error() string {
	return fmt.Sprintf("spec: %s is no attnb installation: %s is missing; `attnb install` makes one", e.Root, e.Missing)
}

// FindHome returns the installation that the running executable belongs to, symbolic links resolved.
func FindHome() (Home, error) {
	exe, err := executable()
	if err != nil {
		return Home{}, err
	}
	return At(filepath.Dir(filepath.Dir(exe)))
}

// At returns the installation at root, or a *NoHomeError.
func At(root string) (Home, error) {
	h := Home{Root: root}
	for _, path := range []string{h.Cell(), filepath.Join(h.PathDir(), "go"), h.Src(), h.Mod()} {
		if _, err := os.Stat(path); err != nil {
			return Home{}, &NoHomeError{Root: root, Missing: path}
		}
	}
	return h, nil
}

func (h Home) bin(name string) string { return filepath.Join(h.Root, "bin", name) }

// Bin holds the executables.
func (h Home) Bin() string { return h.bin("") }

// Attnb is the kernel's executable.
func (h Home) Attnb() string { return h.bin("attnb") }

// Cell is the stand-in for go and goimports, and the launcher.
func (h Home) Cell() string { return h.bin("attnb-cell") }

// Gonb is the stock GoNB.
func (h Home) Gonb() string { return h.bin("gonb") }

// Gopls is the Go language server that gonb asks for completions.
func (h Home) Gopls() string { return h.bin("gopls") }

// Goimports is what gonb completes imports with.
func (h Home) Goimports() string { return h.bin("goimports") }

// PathDir holds only the stand-ins. gonb's PATH begins with PathDir, then Bin.
func (h Home) PathDir() string { return h.bin("path") }

// Src is the module as cells import it.
func (h Home) Src() string { return filepath.Join(h.Root, "src") }

// Mod is a module proxy directory with the dependencies of Src.
func (h Home) Mod() string { return filepath.Join(h.Root, "mod") }

// GoRoot is the installation's own Go toolchain, or "" where the machine has one.
func (h Home) GoRoot() string {
	root := filepath.Join(h.Root, "go")
	if _, err := os.Stat(filepath.Join(root, "bin", "go")); err != nil {
		return ""
	}
	return root
}

// Recipes is where the user's cells keep how they are built, or "" where there is no place for that. It is the same for all
// installations, and may be removed at any time.
func Recipes() string {
	dir, err := os.UserCacheDir()
	if err != nil || !filepath.IsAbs(dir) {
		return ""
	}
	return filepath.Join(dir, "attnb", "recipes")
}

func executable() (string, error) {
	exe, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("spec: cannot find the running executable: %w", err)
	}
	exe, err = filepath.EvalSymlinks(exe)
	if err != nil {
		return "", fmt.Errorf("spec: cannot find the running executable: %w", err)
	}
	return exe, nil
}
