package toolchain

import (
	"os"
	"strconv"
	"syscall"
	"unsafe"
)

// followParent asks for the signal orphaned when the parent dies, and returns the parent.
func followParent() int {
	parent := os.Getppid()
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_PDEATHSIG, uintptr(orphaned), 0)
	return parent
}

// programAttr puts the program into its own group and ties it to our life.
func programAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// toolAttr ties a tool to our life: the go command that would interrupt it is not there.
func toolAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

// wait waits until pid ends and kills what is left of its group, which would hold stdout open.
func wait(pid int) (syscall.WaitStatus, error) {
	ended(pid) // but not reaped, so that the group's number is still its own
	_ = syscall.Kill(-pid, syscall.SIGKILL)
	return reap(pid)
}

// ended returns when pid has ended, and leaves it to be waited for.
func ended(pid int) {
	const (
		byPID  = 1          // P_PID
		noWait = 0x01000000 // WNOWAIT
	)
	var info [128]byte // siginfo_t
	for {
		_, _, err := syscall.Syscall6(syscall.SYS_WAITID, byPID, uintptr(pid), uintptr(unsafe.Pointer(&info)), syscall.WEXITED|noWait, 0, 0)
		if err != syscall.EINTR {
			return
		}
	}
}

// isProgram says whether pid still runs program.
func isProgram(pid int, program string) bool {
	runs, err := os.Stat("/proc/" + strconv.Itoa(pid) + "/exe")
	if err != nil {
		return false
	}
	file, err := os.Stat(program)
	return err == nil && os.SameFile(runs, file)
}

// signalOthers sends s to each process of the group but its leader.
func signalOthers(group int, s syscall.Signal) {
	proc, err := os.Open("/proc")
	if err != nil {
		return
	}
	defer proc.Close()
	names, _ := proc.Readdirnames(-1) // as many as there are
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == group {
			continue
		}
		if of, err := syscall.Getpgid(pid); err == nil && of == group {
			_ = syscall.Kill(pid, s)
		}
	}
}
