//go:build unix && !linux

package toolchain

import (
	"os"
	"syscall"
)

// Where a process cannot be told of its parent's death, the proxy's own sweep ends what is left.

func followParent() int { return os.Getppid() }

func toolAttr() *syscall.SysProcAttr { return nil }

func programAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// wait waits until pid ends and kills what is left of its group, which would hold stdout open.
func wait(pid int) (syscall.WaitStatus, error) {
	status, err := reap(pid)
	_ = syscall.Kill(-pid, syscall.SIGKILL)
	return status, err
}

// isProgram would say whether pid still runs program, which cannot be told here.
func isProgram(int, string) bool { return false }

func signalOthers(int, syscall.Signal) {}
