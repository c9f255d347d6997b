// Command attnb-cell runs several times in every cell, so it is small and starts quickly. Called go, it stands in for
// the go command; called as a program X beside which there is X.cell, it launches that.
package main

import (
	"os"
	"runtime"

	"github.com/attnb/attnb/kernel/toolchain"
)

// The launched program is tied to the thread that starts it: that must be the one thread which lives as long as we do.
func init() { runtime.LockOSThread() }

func main() { os.Exit(toolchain.Main(os.Args)) }
