package bundle

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// clients are the packages of requirements.txt that executing a notebook takes, and making a page of it.
var clients = []string{"jupyter_client", "nbclient", "nbconvert", "nbformat"}

// platforms are the wheels that run with glibc 2.28 and newer.
var platforms = []string{"manylinux_2_28_x86_64", "manylinux_2_26_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64"}

// addWheels adds the Jupyter client, unpacked, for each of the versions of Python: what they share in one directory, the rest
// in a directory for each.
func (a archive) addWheels(ctx context.Context, name, requirements, python string, versions []string, scratch string) error {
	wanted, err := pinned(requirements)
	if err != nil {
		return err
	}
	users := map[string][]string{} // wheel -> versions
	files := map[string]string{}
	for _, version := range versions {
		dir := filepath.Join(scratch, "wheels", version)
		if err := download(ctx, python, version, dir, wanted); err != nil {
			return err
		}
		wheels, err := filepath.Glob(filepath.Join(dir, "*.whl"))
		if err != nil {
			return err
		}
		for _, wheel := range wheels {
			base := filepath.Base(wheel)
			users[base], files[base] = append(users[base], version), wheel
		}
	}
	for base, of := range users {
		dirs := of
		if len(of) == len(versions) {
			dirs = []string{"common"}
		}
		for _, dir := range dirs {
			if err := a.addZip(files[base], func(member string) string { return unpacked(name, dir, member) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// pinned returns the lines of requirements.txt for clients.
func pinned(requirements string) ([]string, error) {
	text, err := os.ReadFile(requirements)
	if err != nil {
		return nil, err
	}
	var found []string
	for line := range strings.Lines(string(text)) {
		if name, _, ok := strings.Cut(strings.TrimSpace(line), "=="); ok && slices.Contains(clients, name) {
			found = append(found, strings.TrimSpace(line))
		}
	}
	if len(found) != len(clients) {
		return nil, fmt.Errorf("%s pins %q, want all of %q", requirements, found, clients)
	}
	return found, nil
}

func download(ctx context.Context, python, version, dir string, wanted []string) error {
	args := []string{
		"-m", "pip", "download", "--quiet", "--no-input", "--disable-pip-version-check", "--only-binary=:all:",
		"--implementation", "cp", "--python-version", version, "--dest", dir,
	}
	for _, platform := range platforms {
		args = append(args, "--platform", platform)
	}
	cmd := exec.CommandContext(ctx, python, append(args, wanted...)...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("wheels for Python %s: %s -m pip download: %w\n%s", version, python, err, bytes.TrimSpace(errs.Bytes()))
	}
	return nil
}

// unpacked is where a member of a wheel goes, "" for nowhere. Tests, type stubs and scripts stay behind.
func unpacked(name, dir, member string) string {
	parts := strings.Split(member, "/")
	if slices.Contains(parts, "tests") || slices.Contains(parts, "test") || path.Ext(member) == ".pyi" {
		return ""
	}
	if !strings.HasSuffix(parts[0], ".data") || len(parts) < 3 {
		return path.Join(name, dir, member)
	}
	rest := path.Join(parts[2:]...)
	switch parts[1] {
	case "purelib", "platlib":
		return path.Join(name, dir, rest)
	case "data":
		return path.Join(name, "data", rest)
	}
	return ""
}
