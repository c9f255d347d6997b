package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

const module = "gorgonia.org/cu"

// firstDeclaration begins CUDA's own part of the module's header; before it stand the C library's declarations, which
// the compiler's own headers replace.
const firstDeclaration = "typedef uint32_t cuuint32_t;"

// moduleHeader returns the CUDA declarations that the module carries.
func moduleHeader() (string, error) {
	cmd := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("find module %s: %w", module, err)
	}
	dir := strings.TrimSpace(string(out))
	if dir == "" {
		if out, err := exec.Command("go", "mod", "download", module).CombinedOutput(); err != nil {
			return "", fmt.Errorf("download module %s: %w\n%s", module, err, out)
		}
		if out, err = exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output(); err != nil {
			return "", fmt.Errorf("find module %s: %w", module, err)
		}
		dir = strings.TrimSpace(string(out))
	}
	text, err := os.ReadFile(filepath.Join(dir, "cmd", "genlib", "cuda.h"))
	if err != nil {
		return "", err
	}
	at := strings.Index(string(text), firstDeclaration)
	if at < 0 {
		return "", fmt.Errorf("%s: cmd/genlib/cuda.h has no line %q", module, firstDeclaration)
	}
	return string(text[at:]), nil
}

// cudaHeader wraps the declarations so that cgo can include them. The two macros are the ones that the module uses and
// its header lacks.
func cudaHeader(declarations string) string {
	return `/* Made from the header in ` + module + `. Do not edit. */
#ifndef CUDA_H
#define CUDA_H
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#define CU_TRSF_READ_AS_INTEGER 0x01
#define CU_TRSF_NORMALIZED_COORDINATES 0x02
` + declarations + `
#endif
`
}

var declaration = regexp.MustCompile(`(?m)^(?:__attribute__\(\(deprecated\)\) )?CUresult\s+(cu[A-Z]\w*)\(`)

// functions returns the names of the functions declared in the header, and of those which this project calls besides.
func functions(header string) ([]string, error) {
	var names []string
	for _, m := range declaration.FindAllStringSubmatch(header, -1) {
		names = append(names, m[1])
	}
	if len(names) < 100 {
		return nil, errors.New("the header of " + module + " declares too few functions")
	}
	return append(names, newer...), nil
}

// newer are functions that appeared after the module's header (CUDA 11.0) and that cudaops/cuda declares itself, the last in CUDA 11.8.
var newer = []string{
	"cuMemAllocAsync", "cuMemFreeAsync", "cuDeviceGetDefaultMemPool", "cuMemPoolSetAttribute", "cuMemPoolGetAttribute",
	"cuMemPoolTrimTo", "cuLaunchKernelEx",
}
