//go:build cuda

package cuda

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// pretend is a driver without a GPU behind it: it answers what the environment says.
const pretend = `
#include <stdlib.h>
#include <string.h>
static int number(const char *name, int otherwise) {
	const char *v = getenv(name);
	return v ? atoi(v) : otherwise;
}
int cuInit(unsigned flags) { return number("PRETEND_INIT", 0); }
int cuDriverGetVersion(int *v) { *v = number("PRETEND_VERSION", 12040); return 0; }
int cuDeviceGetCount(int *n) { *n = number("PRETEND_COUNT", 1); return 0; }
int cuDeviceGet(int *d, int ordinal) { *d = ordinal; return 0; }
int cuDeviceGetName(char *name, int n, int d) { strncpy(name, "Pretend 9000", n); return 0; }
int cuDeviceTotalMem_v2(size_t *n, int d) { *n = 1 << 30; return 0; }
int cuDeviceGetAttribute(int *v, int a, int d) {
	*v = a == 75 ? number("PRETEND_CAPABILITY", 90) / 10 : a == 76 ? number("PRETEND_CAPABILITY", 90) % 10 : 0;
	return 0;
}
int cuGetErrorName(int e, const char **s) { *s = "CUDA_ERROR_PRETEND"; return 0; }
int cuGetErrorString(int e, const char **s) { *s = "pretended"; return 0; }
`

// Every reason for having no GPU has its own line.
func TestUnavailable(t *testing.T) {
	cc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("no C compiler")
	}
	dir := t.TempDir()
	source := filepath.Join(dir, "pretend.c")
	if err := os.WriteFile(source, []byte(pretend), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(cc, "-shared", "-fPIC", "-o", filepath.Join(dir, "libcuda.so.1"), source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	broken := t.TempDir()
	if err := os.WriteFile(filepath.Join(broken, "libcuda.so.1"), []byte("not a library"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, library string
		env           []string
		ordinal       int
		want          string
	}{
		{"no driver", broken, nil, 0, "cuda: no NVIDIA driver on this machine: "},
		{"no GPU", dir, []string{"PRETEND_INIT=100"}, 0, "cuda: an NVIDIA driver, but no GPU on this machine"},
		{"count 0", dir, []string{"PRETEND_COUNT=0"}, 0, "cuda: an NVIDIA driver, but no GPU on this machine"},
		{"hidden", dir, []string{"PRETEND_INIT=100", "CUDA_VISIBLE_DEVICES="}, 0, `cuda: no GPU is visible: CUDA_VISIBLE_DEVICES is ""`},
		{"hidden by -1", dir, []string{"PRETEND_COUNT=0", "CUDA_VISIBLE_DEVICES=-1"}, 0, `cuda: no GPU is visible: CUDA_VISIBLE_DEVICES is "-1"`},
		{"mismatch", dir, []string{"PRETEND_INIT=803"}, 0, "cuda: the NVIDIA driver was updated while it was loaded: restart the machine (pretended (CUDA_ERROR_PRETEND))"},
		{"broken driver", dir, []string{"PRETEND_INIT=999"}, 0, "cuda: the NVIDIA driver does not start: pretended (CUDA_ERROR_PRETEND)"},
		{"old driver", dir, []string{"PRETEND_VERSION=11080"}, 0, "cuda: the NVIDIA driver is for CUDA 11.8; CUDA 12.0 (driver 525) or later is needed"},
		{"old GPU", dir, []string{"PRETEND_CAPABILITY=61"}, 0, "cuda: GPU 0, Pretend 9000, has compute capability 6.1; 7.5 or later is needed"},
		{"out of range", dir, []string{"PRETEND_COUNT=2"}, 2, "cuda: no GPU 2: this machine shows 2, numbered from 0"},
		{"negative", dir, nil, -1, "cuda: no GPU -1: this machine shows 1, numbered from 0"},
		{"no pools", dir, nil, 0, "cuda: GPU 0, Pretend 9000, has no stream-ordered memory"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := exec.Command(os.Args[0])
			for _, e := range os.Environ() {
				if !strings.HasPrefix(e, "CUDA_VISIBLE_DEVICES=") {
					cmd.Env = append(cmd.Env, e)
				}
			}
			cmd.Env = append(cmd.Env, "LD_LIBRARY_PATH="+c.library, fmt.Sprintf("%s=%d", openVariable, c.ordinal))
			cmd.Env = append(cmd.Env, c.env...)
			out, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			got := strings.TrimSuffix(string(out), "\n")
			if !strings.HasPrefix(got, c.want) || strings.Contains(got, "\n") || c.want[len(c.want)-1] != ' ' && got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}
