// Command shim runs a command, such as go build, in an environment where the build tag cuda compiles and links without
// a CUDA toolkit and without a driver:
//
//	go run ./cudaops/cuda/shim go build -tags cuda ./...
//
// It makes two things in a directory (-dir, build/cuda by default), from the module gorgonia.org/cu alone:
//
//   - include/cuda.h, cut from the declarations which that module carries for its own generator;
//   - lib/libcuda.a, one jump for each declared function, through a table that the program itself fills from
//     libcuda.so.1 when it opens the driver. Until then, and for a function that the driver lacks, a call returns an error.
//
// Without a command it prints the environment, for a shell to evaluate.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	dir := flag.String("dir", filepath.Join("build", "cuda"), "`directory` for the header and the archive")
	flag.Parse()
	if err := run(*dir, flag.Args()); err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			os.Exit(exit.ExitCode())
		}
		fmt.Fprintln(os.Stderr, "shim:", err)
		os.Exit(1)
	}
}

func run(dir string, command []string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if err := generate(dir); err != nil {
		return err
	}
	env := []string{
		"CGO_ENABLED=1",
		"CGO_CFLAGS=-O2 -I" + filepath.Join(dir, "include"),
		"CGO_LDFLAGS=-O2 -L" + filepath.Join(dir, "lib") + " -ldl",
	}
	if len(command) == 0 {
		for _, e := range env {
			name, value, _ := strings.Cut(e, "=")
			fmt.Printf("export %s='%s'\n", name, strings.ReplaceAll(value, "'", `'\''`))
		}
		return nil
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd.Run()
}

// generate writes the header and the archive under dir. A file that is already right is left alone, so that Go's build
// cache holds.
func generate(dir string) error {
	header, err := moduleHeader()
	if err != nil {
		return err
	}
	names, err := functions(header)
	if err != nil {
		return err
	}
	if _, err := writeIfChanged(filepath.Join(dir, "include", "cuda.h"), cudaHeader(header)); err != nil {
		return err
	}
	source := filepath.Join(dir, "lib", "standin.c")
	changed, err := writeIfChanged(source, standIn(names))
	if err != nil {
		return err
	}
	archive := filepath.Join(dir, "lib", "libcuda.a")
	if _, err := os.Stat(archive); err == nil && !changed {
		return nil
	}
	object := filepath.Join(dir, "lib", "standin.o")
	if err := tool(compiler(), "-O2", "-fPIC", "-c", "-o", object, source); err != nil {
		return err
	}
	_ = os.Remove(archive) // ar adds to what is there
	return tool("ar", "rcs", archive, object)
}

// compiler is the C compiler that cgo would run.
func compiler() string {
	if cc := os.Getenv("CC"); cc != "" {
		return cc
	}
	return "gcc"
}

func tool(name string, args ...string) error {
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", name, err, out)
	}
	return nil
}

func writeIfChanged(path, content string) (changed bool, err error) {
	if old, err := os.ReadFile(path); err == nil && string(old) == content {
		return false, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return false, err
	}
	return true, os.WriteFile(path, []byte(content), 0o644)
}
