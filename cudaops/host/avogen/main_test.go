package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestWritten compares what is in package host with what this program writes now.
func TestWritten(t *testing.T) {
	dir := t.TempDir()
	assembly, stubs := filepath.Join(dir, "kernels_amd64.s"), filepath.Join(dir, "kernels_amd64.go")
	if out, err := exec.Command("go", "run", ".", "-out", assembly, "-stubs", stubs, "-pkg", "host").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, path := range []string{assembly, stubs} {
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join("..", filepath.Base(path)))
		if err != nil {
			t.Fatal(err)
		}
		// The first line holds the command, and so the paths.
		if after(got) != after(want) {
			t.Errorf("%s is not what avogen writes: go generate ./cudaops/host", filepath.Base(path))
		}
	}
}

// after is a text without its first line.
func after(text []byte) string {
	for i, b := range text {
		if b == '\n' {
			return string(text[i:])
		}
	}
	return ""
}
