//go:build cuda

package cuda

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// Every kernel begins with begin: what stands before may run while the kernel before it still writes.
func TestKernelsBegin(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "kernels", "*.cu"))
	if err != nil {
		t.Fatal(err)
	}
	kernel := regexp.MustCompile(`__global__[^{;]*\{([^;]*);`)
	first := regexp.MustCompile(`^[\s\\]*begin\(\w+(\.\w+)*\.progress\)$`)
	found := 0
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range kernel.FindAllSubmatch(text, -1) {
			if found++; !first.Match(m[1]) {
				t.Errorf("%s: a kernel begins with %q", filepath.Base(name), m[1])
			}
		}
	}
	if found < 40 {
		t.Errorf("%d kernels found", found)
	}
}
