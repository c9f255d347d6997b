package spec

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Path is the PATH that gonb gets: the stand-in, our tools, then the user's.
func (h Home) Path(user string) string {
	return strings.Join([]string{h.PathDir(), h.Bin(), user}, string(filepath.ListSeparator))
}

const selfTestSays = "attnb self-test"

// SelfTest builds a cell that imports all that an installation offers, the way gonb does, runs it, and returns how long
// that took.
func SelfTest(ctx context.Context, h Home) (time.Duration, error) {
	start := time.Now()
	tmp, err := os.MkdirTemp("", "attnb-selftest-*")
	if err != nil {
		return 0, fmt.Errorf("spec: self-test: %w", err)
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	dir := filepath.Join(tmp, "gonb_0000000000")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return 0, fmt.Errorf("spec: self-test: %w", err)
	}
	code, err := selfTestCell(h)
	if err == nil {
		err = writeText(filepath.Join(dir, "main.go"), code)
	}
	if err != nil {
		return 0, fmt.Errorf("spec: self-test: %w", err)
	}
	program := filepath.Join(dir, filepath.Base(dir))
	standIn := filepath.Join(h.PathDir(), "go")
	var out []byte
	for _, step := range [][]string{
		{standIn, "mod", "init", filepath.Base(dir)},
		{standIn, "get"},
		{standIn, "build", "-o", program},
		{program},
	} {
		cmd := exec.CommandContext(ctx, step[0], step[1:]...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "PATH="+h.Path(os.Getenv("PATH")), "PWD="+dir, "ATTNB_NONCE=")
		out, err = cmd.CombinedOutput()
		if err != nil {
			return 0, fmt.Errorf("spec: self-test: %s: %w\n%s", strings.Join(step, " "), err, out)
		}
	}
	if strings.TrimSpace(string(out)) != selfTestSays {
		return 0, fmt.Errorf("spec: self-test: the cell printed %q", out)
	}
	return time.Since(start), nil
}

// selfTestCell is the program of a cell that imports every package in src.
func selfTestCell(h Home) (string, error) {
	dirs := map[string]bool{}
	err := filepath.WalkDir(h.Src(), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".go" && !strings.Contains(path, "/internal/") {
			dirs[filepath.Dir(path)] = true
		}
		return err
	})
	if err != nil {
		return "", err
	}
	var code strings.Builder
	code.WriteString("package main\n\nimport (\n\t\"fmt\"\n\n")
	for _, dir := range sortedKeys(dirs) {
		rel, err := filepath.Rel(h.Src(), dir)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&code, "\t_ %q\n", Module+"/"+filepath.ToSlash(rel))
	}
	fmt.Fprintf(&code, ")\n\nfunc main() { fmt.Println(%q) }\n", selfTestSays)
	return code.String(), nil
}
