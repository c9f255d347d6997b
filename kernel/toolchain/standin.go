package toolchain

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/attnb/attnb/kernel/spec"
)

// standIn does what `go args...` does, and the little more that a cell needs.
func standIn(args []string) int {
	home, err := spec.FindHome()
	if err != nil {
		return fail("%v", err)
	}
	real, err := realGo(home, os.Getenv("PATH"))
	if err != nil {
		return fail("%v", err)
	}
	dir, err := os.Getwd()
	if err != nil || !isCell(dir) || os.Getenv("GOOS") == "js" {
		return become(real, args, os.Environ())
	}
	env := cellEnviron(home, real)
	switch {
	case isModInit(args, dir):
		return modInit(home, real, args, env, dir)
	case isPlainGet(args) && satisfied(dir, goroot(real)):
		return 0
	case isCellBuild(args, dir):
		if err := placeLauncher(home, filepath.Join(dir, filepath.Base(dir))); err != nil {
			return fail("%v", err)
		}
		if b := plainBuild(real, dir, args, env); b != nil && b.make() {
			return 0
		}
		return become(real, buildArgs(args, onceFlag(dir)), env)
	}
	return become(real, args, env)
}

// isCell says whether dir is one that gonb builds cells in: gonb_ and eight or more hex digits.
func isCell(dir string) bool {
	id, ok := strings.CutPrefix(filepath.Base(dir), "gonb_")
	return ok && len(id) >= 8 && strings.Trim(id, "0123456789abcdef") == ""
}

// isModInit recognises `go mod init NAME` of a cell's directory.
func isModInit(args []string, dir string) bool {
	return len(args) == 3 && args[0] == "mod" && args[1] == "init" && args[2] == filepath.Base(dir)
}

// isPlainGet recognises `go get` and `go get -t`.
func isPlainGet(args []string) bool {
	return len(args) > 0 && args[0] == "get" && (len(args) == 1 || len(args) == 2 && args[1] == "-t")
}

// isCellBuild recognises `go build -o PROGRAM ...` and `go test -c -o PROGRAM ...` for the cell's own program.
func isCellBuild(args []string, dir string) bool {
	at := outputAt(args)
	return at > 0 && args[at] == filepath.Join(dir, filepath.Base(dir))
}

// outputAt is the index of the output path in what gonb calls, 0 in anything else.
func outputAt(args []string) int {
	switch {
	case len(args) >= 3 && args[0] == "build" && args[1] == "-o":
		return 2
	case len(args) >= 4 && args[0] == "test" && args[1] == "-c" && args[2] == "-o":
		return 3
	}
	return 0
}

// ourFlags are the linker's in each cell: no symbol tables.
const ourFlags = "-s -w"

// buildArgs returns args with the output beside the launcher, without symbol tables (which takes a third off a small
// cell's build) and without looking for version control. Flags of the user's own come later, so they win.
func buildArgs(args []string, once string) []string {
	at := outputAt(args)
	var ours, theirs, rest []string
	ours = append(ours, args[:at]...)
	ours = append(ours, args[at]+programSuffix, "-buildvcs=false")
	ldflags := strings.TrimSpace(ourFlags + " " + once)
	for i := at + 1; i < len(args); i++ {
		value, isFlag := "", false
		switch name, v, joined := strings.Cut(args[i], "="); {
		case name != "-ldflags" && name != "--ldflags":
		case joined:
			value, isFlag = v, true
		case i+1 < len(args):
			i++
			value, isFlag = args[i], true
		}
		switch {
		case !isFlag:
			rest = append(rest, args[min(i, len(args)-1)])
		case strings.HasPrefix(value, "-"):
			ldflags += " " + value
		default: // for a pattern of packages, or not for us to understand
			theirs = append(theirs, "-ldflags="+value)
		}
	}
	ours = append(ours, "-ldflags="+ldflags)
	return append(append(ours, theirs...), rest...)
}

// placeLauncher makes path the launcher of path.cell.
func placeLauncher(home spec.Home, path string) error {
	if target, err := os.Readlink(path); err == nil && target == home.Cell() {
		return nil
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.Symlink(home.Cell(), path)
}

// become replaces this process by the real command.
func become(real string, args, env []string) int {
	err := syscall.Exec(real, append([]string{filepath.Base(real)}, args...), env)
	return fail("cannot start %s: %v", real, err)
}

// run runs the real go and returns its exit status.
func run(real string, args, env []string) int {
	cmd := exec.Command(real, args...)
	cmd.Env = env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit) && exit.ExitCode() > 0:
		return exit.ExitCode()
	}
	return fail("cannot run %s: %v", real, err)
}
