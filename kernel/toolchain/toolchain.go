// Package toolchain is what runs once or more in every cell: stand-ins for the go command and for goimports, first on
// gonb's PATH, and the launcher of the programs that were built.
//
// The stand-in for go changes only what happens in a cell's directory, the one in which gonb writes and builds a cell:
//
//   - go mod init: adds this module and what it needs to go.mod and go.sum
//   - go get without packages: nothing, when go.mod already has what the cell imports
//   - go build, go test -c: no symbol tables, hashes for attn.Once, the program at X.cell and the launcher at X
//
// A plain cell it builds as the go command would, by the compiler and the linker, without the work of finding out how: that
// is in a recipe, taken from what the go command did for an earlier cell with the same imports.
//
// The stand-in for goimports spares the real one where no import is missing.
//
// All else, and whatever is in doubt, is handed to the real commands as it came.
package toolchain

import (
	"fmt"
	"os"
	"path/filepath"
)

// EnvUserTMPDIR holds the user's own TMPDIR, because gonb has another. Set but empty: the user has none.
const EnvUserTMPDIR = "ATTNB_USER_TMPDIR"

const programSuffix = ".cell"

// Main acts by the name that it was called by, and returns the exit status. args is os.Args.
func Main(args []string) int {
	switch filepath.Base(args[0]) {
	case "go":
		return standIn(args[1:])
	case "goimports":
		return goimports(args[1:])
	}
	if program := args[0] + programSuffix; exists(program) {
		return launch(program, args)
	}
	return fail("%s runs as go, as goimports, or as a program that go built: it is not a command", filepath.Base(args[0]))
}

func fail(format string, args ...any) int {
	fmt.Fprintf(os.Stderr, "attnb: "+format+"\n", args...)
	return 1
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
