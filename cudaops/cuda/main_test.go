//go:build cuda

package cuda

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/attnb/attnb/cudaops/cuda/emulator"
)

const (
	// openVariable makes the test program open the GPU of that number, print the outcome and end.
	openVariable = "ATTNB_TEST_OPEN"
	// emulatedVariable tells the test program that its GPU is the emulator.
	emulatedVariable = "ATTNB_TEST_EMULATED"
)

var emulated = os.Getenv(emulatedVariable) != ""

// noEmulator is why there is none where there is no GPU.
var noEmulator error

// Without a driver the tests run once more, in a process that finds the emulator's.
func TestMain(m *testing.M) {
	if v, ok := os.LookupEnv(openVariable); ok {
		ordinal := 0
		fmt.Sscan(v, &ordinal)
		_, err := Open(ordinal, Options{})
		fmt.Println(err)
		os.Exit(0)
	}
	if status, _ := openDriver(); status == -1 && !emulated {
		code, err := runEmulated()
		if err == nil {
			os.Exit(code)
		}
		noEmulator = err
	}
	os.Exit(m.Run())
}

func runEmulated() (code int, err error) {
	dir, err := os.MkdirTemp("", "emulator")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	if err := emulator.Build(filepath.Join("..", "kernels"), dir); err != nil {
		return 0, err
	}
	cmd := exec.Command(os.Args[0], os.Args[1:]...)
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+dir, emulatedVariable+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode(), nil
	}
	return 0, err
}

// openBackend opens GPU 0, or skips the test where there is none and no compiler for the emulator.
func openBackend(t *testing.T, o Options) *Backend {
	t.Helper()
	b, err := open(0, o)
	var none *UnavailableError
	if errors.As(err, &none) {
		if status, _ := openDriver(); status == 0 {
			t.Fatal(err) // there is a driver, and perhaps a GPU that cannot be used
		}
		if noEmulator != nil && !errors.Is(noEmulator, emulator.ErrNoCompiler) {
			t.Fatal(noEmulator)
		}
		t.Skip(errors.Join(err, noEmulator))
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}
