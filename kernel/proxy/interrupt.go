package proxy

import (
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/attnb/attnb/kernel/proxy/cell"
	"github.com/attnb/attnb/kernel/proxy/runtimedir"
)

const (
	interruptPoll = 15 * time.Millisecond
	interruptKill = 5 * time.Second
	gonbGrace     = 3 * time.Second // how much longer gonb may do nothing visible for an interrupted cell
)

// interrupt stops the cell that runs: whatever gonb has started for it gets SIGINT, once, and SIGKILL when it still
// runs after interruptKill. What gonb starts later for the same cell (the next shell line, the build after a
// goimports) gets the same, until the cell is over.
func (k *Kernel) interrupt() {
	k.mu.Lock()
	e := k.running
	k.mu.Unlock()
	if e == nil || !e.markInterrupted() {
		return
	}
	go k.device.interrupt()
	go e.signalAll()
}

func (e *execution) markInterrupted() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.over || e.interrupted {
		return false
	}
	e.interrupted = true
	return true
}

func (e *execution) isInterrupted() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.interrupted
}

func (e *execution) isOver() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.over
}

func (e *execution) signalAll() {
	type heard struct {
		when    time.Time
		program string
	}
	signalled := map[int]heard{}
	began := time.Now()
	for !e.isOver() {
		wake := false
		group := e.k.currentGonb().cmd.Process.Pid
		pids := offspring(group)
		if len(pids) == 0 && time.Since(began) > interruptKill+gonbGrace {
			e.k.log.Error("gonb hangs, and is replaced")
			e.k.currentGonb().end()
			return
		}
		for _, pid := range pids {
			before, done := signalled[pid]
			now := programOf(pid)
			switch {
			case !done, now != before.program && now != "": // what a shell's child hears before it becomes another program, that one may not
				signalled[pid] = heard{time.Now(), now}
				_ = syscall.Kill(pid, syscall.SIGINT)
				wake = true
			case time.Since(before.when) > interruptKill:
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		if wake {
			e.k.currentGonb().throttle.resume() // who is stopped does not hear
		}
		time.Sleep(interruptPoll)
	}
}

// offspring returns what gonb runs for a cell: what descends from it in its own process group. The launcher passes
// signals on to the group of the program that it runs; gopls has its own group.
func offspring(gonb int) []int {
	var all []int
	next := runtimedir.Children(gonb)
	for len(next) > 0 {
		pid := next[0]
		next = next[1:]
		if group, err := syscall.Getpgid(pid); err != nil || group != gonb {
			continue
		}
		all = append(all, pid)
		next = append(next, runtimedir.Children(pid)...)
	}
	return all
}

// programOf is the file that a process runs; empty where the system does not tell.
func programOf(pid int) string {
	name, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	return name
}

// interruption is the problem of a cell that was interrupted before or in a segment. stacks are what its program wrote, or nil.
func (e *execution) interruption(s cell.Segment, stacks *stacks) *problem {
	if s.Shell {
		return e.atLine("Interrupted", s.Line, "interrupted")
	}
	if trace := e.whereabouts(stacks); trace != nil {
		return &problem{"Interrupted", "interrupted", trace}
	}
	return e.atLine("Interrupted", cell.NoLine, "interrupted")
}
