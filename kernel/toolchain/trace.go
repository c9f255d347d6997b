package toolchain

import (
	"bytes"
	"os"
	"syscall"

	"github.com/attnb/attnb/kernel/wire"
)

// handlesSignals are what the linker keeps of package os/signal in programs that may catch or ignore an interrupt, as the
// program's table of functions names them.
var handlesSignals = [][]byte{[]byte("os/signal.signal_enable\x00"), []byte("os/signal.signal_ignore\x00")}

// traces reports whether program, which runs as pid, can be asked where it is: by SIGQUIT a Go program writes its stacks and
// ends. One that may do something else at an interrupt is to get the interrupt, and so is what has taken its place by exec.
func traces(program string, pid int) bool {
	if !isProgram(pid, program) {
		return false
	}
	text, err := os.ReadFile(program)
	if err != nil || !bytes.Contains(text, []byte("runtime.goexit\x00")) {
		return false
	}
	for _, name := range handlesSignals {
		if bytes.Contains(text, name) {
			return false
		}
	}
	return true
}

// interrupt sends the group of program SIGINT, or asks the program for its stacks where the proxy reads them and an interrupt
// would have ended it all the same. It reports whether it did that.
func (s *streams) interrupt(program string, pid int) (asked bool) {
	if s.marks == 1 || !traces(program, pid) {
		_ = syscall.Kill(-pid, syscall.SIGINT)
		return false
	}
	_ = syscall.Kill(pid, syscall.SIGQUIT)
	signalOthers(pid, syscall.SIGINT)
	go s.enough(pid)
	return true
}

// enough ends the group when the proxy has read what it needs: the stacks of many goroutines take seconds to write.
func (s *streams) enough(pid int) {
	var said [1]byte
	for {
		n, err := syscall.Read(s.marks, said[:])
		switch {
		case err == syscall.EINTR, err == syscall.EAGAIN: // there is a limit on reading, for the first answer
		case err != nil || n == 0:
			return
		case said[0] == wire.StreamsEnough:
			_ = syscall.Kill(-pid, syscall.SIGKILL)
			return
		}
	}
}
