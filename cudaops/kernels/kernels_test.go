package kernels

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

func sum(data []byte) string {
	h := sha256.Sum256(data)
	return hex.EncodeToString(h[:])
}

// The images were built from the sources that stand here.
func TestManifest(t *testing.T) {
	m, err := ReadManifest()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, pattern := range []string{"*.cu", "*.cuh"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			found[name] = sum(text)
		}
	}
	if !maps.Equal(found, m.Sources) {
		t.Errorf("the sources changed since the images were built: run make kernels\nhave %v\nbuilt %v", found, m.Sources)
	}
	if len(m.Images) != len(cubins)+1 {
		t.Errorf("manifest has %d images, want %d", len(m.Images), len(cubins)+1)
	}
	for name, want := range m.Images {
		image, err := Image(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := sum(image); got != want {
			t.Errorf("image %s is %s, the manifest says %s", name, got, want)
		}
	}
}

func TestName(t *testing.T) {
	for _, c := range []struct {
		major, minor int
		want         string
	}{
		{6, 1, ""}, {7, 0, ""}, {7, 2, ""}, {7, 5, "sm_75"}, {8, 0, "sm_80"}, {8, 6, "sm_80"}, {8, 9, "sm_80"},
		{9, 0, "sm_90a"}, {10, 0, "compute_90"}, {12, 0, "compute_90"},
	} {
		if got := Name(c.major, c.minor); got != c.want {
			t.Errorf("Name(%d, %d) = %q, want %q", c.major, c.minor, got, c.want)
		}
	}
}

// The compiler makes the same kernels again, where it is installed.
func TestRebuild(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles for a quarter of a minute")
	}
	var out bytes.Buffer
	cmd := exec.Command("python3", "build.py", "--check")
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case errors.Is(err, exec.ErrNotFound):
		t.Skip("no python3")
	case errors.As(err, &exit) && exit.ExitCode() == 3:
		t.Skip("NVRTC is not installed: make kernels installs it")
	case err != nil:
		t.Fatalf("%v\n%s", err, out.String())
	}
}
