// Package toolchain is what runs once or more in every cell: a stand-in for the go command, first on gonb's PATH, and
// the launcher of the programs that it built.
//
// The stand-in changes only what happens in a cell's directory, the one in which gonb writes and builds a cell:
//
//   - go mod init: adds this module and what it needs to go.mod and go.sum
//   - go get without packages: nothing, when go.mod already has what the cell imports
//   - go build, go test -c: no symbol tables, hashes for attn.Once, the program at X.cell and the launcher at X
//
// All else, and whatever is in doubt, is handed to the real go as it came.
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
	if filepath.Base(args[0]) == "go" {
		return standIn(args[1:])
	}
	if program := args[0] + programSuffix; exists(program) {
		return launch(program, args)
	}
	return fail("%s runs as go, or as a program that go built: it is not a command", filepath.Base(args[0]))
}

func fail(format string, args ...any) int {
	fmt.Fprintf(os.Stderr, "attnb: "+format+"\n", args...)
	return 1
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
