package proxy

import (
	"sync"
	"syscall"

	"github.com/attnb/attnb/kernel/proxy/runtimedir"
)

// Marks of the bytes that wait between gonb and the clients. gonb queues without bound what we do not take from it, so we
// take all; what bounds the queue is that above highMark the cell is stopped, and below lowMark it goes on.
const (
	highMark = 8 << 20
	lowMark  = 2 << 20
)

// throttle stops and continues what gonb runs.
type throttle struct {
	gonb int // process

	mu      sync.Mutex
	stopped []int
}

func (t *throttle) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.stopped) > 0 {
		return
	}
	for _, pid := range descendants(t.gonb) {
		if syscall.Kill(pid, syscall.SIGSTOP) == nil {
			t.stopped = append(t.stopped, pid)
		}
	}
}

func (t *throttle) resume() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, pid := range t.stopped {
		_ = syscall.Kill(pid, syscall.SIGCONT)
	}
	t.stopped = nil
}

// descendants returns all that gonb has started and what that has started, except for the language server.
func descendants(gonb int) []int {
	var all []int
	var walk func(pids []int)
	walk = func(pids []int) {
		for _, pid := range pids {
			if runtimedir.Name(pid) == "gopls" {
				continue
			}
			all = append(all, pid)
			walk(runtimedir.Children(pid))
		}
	}
	walk(runtimedir.Children(gonb))
	return all
}
