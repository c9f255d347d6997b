// Package emulator builds a libcuda.so.1 that runs the project's CUDA kernels on the processor, so that tests reach every
// kernel, and all of the host's side of it, on machines without a GPU. It shows right numbers and accesses outside arrays;
// it shows neither races nor speed, and stands in for no test on a GPU.
package emulator

import (
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
)

//go:embed driver
var driver embed.FS

// ErrNoCompiler says that the emulator cannot be built on this machine.
var ErrNoCompiler = errors.New("emulator: it needs g++ on amd64")

// changes make C++ of what only CUDA's compiler takes.
var changes = []struct {
	pattern *regexp.Regexp
	text    string
}{
	{regexp.MustCompile(`const __grid_constant__ (\w+) (\w)`), `const $1 &$2`},
	{regexp.MustCompile(`extern __shared__ __align__\(16\) float shared\[\];`), `float *shared = dynamicShared;`},
	{regexp.MustCompile(`(?m)^#pragma unroll.*$`), ``},
	{regexp.MustCompile(`__noinline__`), `__attribute__((noinline))`},
}

// Build compiles the kernels whose sources lie in the directory kernels, and puts libcuda.so.1 into dir.
func Build(kernels, dir string) error {
	compiler, err := exec.LookPath("g++")
	if err != nil || runtime.GOARCH != "amd64" {
		return ErrNoCompiler
	}
	work, err := os.MkdirTemp(dir, "source")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	var files []string
	for _, pattern := range []string{"*.cu", "*.cuh"} {
		names, err := filepath.Glob(filepath.Join(kernels, pattern))
		if err != nil {
			return err
		}
		files = append(files, names...)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		for _, c := range changes {
			text = c.pattern.ReplaceAll(text, []byte(c.text))
		}
		to := filepath.Base(name)
		if to == "all.cu" {
			to = "kernels.h"
		}
		if err := os.WriteFile(filepath.Join(work, to), text, 0o600); err != nil {
			return err
		}
	}
	main := filepath.Join(work, "driver", "driver.cpp")
	if err := os.CopyFS(work, driver); err != nil {
		return err
	}
	library := filepath.Join(work, "libcuda.so.1")
	out, err := exec.Command(compiler, "-O2", "-std=c++17", "-fPIC", "-shared", "-ffp-contract=fast", "-march=native", "-w",
		"-fvisibility=hidden", "-I", work, "-o", library, main).CombinedOutput()
	if err != nil {
		return fmt.Errorf("emulator: %w\n%s", err, out)
	}
	return os.Rename(library, filepath.Join(dir, "libcuda.so.1"))
}
