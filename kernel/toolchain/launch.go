package toolchain

import (
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/attnb/attnb/kernel/wire"
)

// grace is how long a program may take to end after it was asked to. gonb kills its child, which is us, after 5 s; by
// then the program and what it started must be gone, and the way it ended told.
const grace = 4500 * time.Millisecond

// orphaned is the signal that tells us of our parent's death, where the system can tell.
const orphaned = syscall.SIGUSR1

// launch runs program as the leader of its own process group with our arguments and environment, and returns its exit
// status, or 128 + n when signal n ended it. Nothing in the group outlives the program, and the group does not outlive us.
func launch(program string, args []string) int {
	asked := make(chan os.Signal, 16)
	signal.Notify(asked, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE, orphaned)
	parent := followParent()

	s := openStreams()
	s.mark(wire.MarkStart, "")
	pid, err := syscall.ForkExec(program, args, &syscall.ProcAttr{
		Env:   programEnviron(os.Environ()),
		Files: s.files[:],
		Sys:   programAttr(),
	})
	s.started()
	if err != nil {
		code := fail("cannot start the cell's program: %v", err)
		s.mark(wire.MarkExit, strconv.Itoa(code))
		return code
	}

	var quit atomic.Bool // the program was asked for its stacks, in place of an interrupt
	go forward(asked, pid, parent, func() {
		if !quit.Load() && s.interrupt(program, pid) {
			quit.Store(true)
		}
	})
	status, err := wait(pid)
	switch {
	case err != nil:
		code := fail("lost the cell's program: %v", err)
		s.mark(wire.MarkExit, strconv.Itoa(code))
		return code
	case quit.Load() && (status.Signaled() || status.ExitStatus() == 2): // as the interrupt would have ended it
		s.mark(wire.MarkExit, "signal "+signalName(syscall.SIGINT))
		return 128 + int(syscall.SIGINT)
	case status.Signaled():
		s.mark(wire.MarkExit, "signal "+signalName(status.Signal()))
		return 128 + int(status.Signal())
	}
	s.mark(wire.MarkExit, strconv.Itoa(status.ExitStatus()))
	return status.ExitStatus()
}

// forward passes on what we are asked to do, and ends the group when it takes too long, or at once when our own parent
// has died.
func forward(asked <-chan os.Signal, group, parent int, interrupt func()) {
	var deadline <-chan time.Time
	for {
		select {
		case s := <-asked:
			switch {
			case os.Getppid() != parent:
				_ = syscall.Kill(-group, syscall.SIGKILL)
				continue
			case s == orphaned, s == syscall.SIGPIPE: // nothing that the program does not hear of by itself
				continue
			}
			if s == syscall.SIGINT {
				interrupt()
			} else {
				_ = syscall.Kill(-group, s.(syscall.Signal))
			}
			if deadline == nil {
				deadline = time.After(grace)
			}
		case <-deadline:
			_ = syscall.Kill(-group, syscall.SIGKILL)
		}
	}
}

// reap waits for pid and takes its status.
func reap(pid int) (syscall.WaitStatus, error) {
	var status syscall.WaitStatus
	for {
		if _, err := syscall.Wait4(pid, &status, 0, nil); err != syscall.EINTR {
			return status, err
		}
	}
}

// programEnviron gives the program the user's own TMPDIR, and not what was meant for us.
func programEnviron(env []string) []string {
	user, ours := os.LookupEnv(EnvUserTMPDIR)
	kept := slices.DeleteFunc(env, func(entry string) bool {
		return ours && (strings.HasPrefix(entry, "TMPDIR=") || strings.HasPrefix(entry, EnvUserTMPDIR+"=")) ||
			strings.HasPrefix(entry, wire.EnvStreams+"=")
	})
	if user != "" {
		kept = append(kept, "TMPDIR="+user)
	}
	return kept
}

var signalNames = map[syscall.Signal]string{
	syscall.SIGABRT: "SIGABRT", syscall.SIGALRM: "SIGALRM", syscall.SIGBUS: "SIGBUS", syscall.SIGFPE: "SIGFPE",
	syscall.SIGHUP: "SIGHUP", syscall.SIGILL: "SIGILL", syscall.SIGINT: "SIGINT", syscall.SIGKILL: "SIGKILL",
	syscall.SIGPIPE: "SIGPIPE", syscall.SIGQUIT: "SIGQUIT", syscall.SIGSEGV: "SIGSEGV", syscall.SIGSYS: "SIGSYS",
	syscall.SIGTERM: "SIGTERM", syscall.SIGTRAP: "SIGTRAP", syscall.SIGUSR1: "SIGUSR1", syscall.SIGUSR2: "SIGUSR2",
	syscall.SIGXCPU: "SIGXCPU", syscall.SIGXFSZ: "SIGXFSZ",
}

func signalName(s syscall.Signal) string {
	if name, ok := signalNames[s]; ok {
		return name
	}
	return "SIG" + strconv.Itoa(int(s))
}
