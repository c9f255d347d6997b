package proxy

import (
	"crypto/rand"
	"encoding/hex"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
)

// spawner starts child processes from one thread that lives as long as this process: the death signal of a child is
// tied to the thread that started it.
type spawner struct{ work chan func() }

func newSpawner() *spawner {
	s := &spawner{work: make(chan func())}
	go func() {
		runtime.LockOSThread()
		for f := range s.work {
			f()
		}
	}()
	return s
}

func (s *spawner) start(cmd *exec.Cmd) (err error) {
	cmd.SysProcAttr = childAttr()
	done := make(chan struct{})
	s.work <- func() {
		err = cmd.Start()
		close(done)
	}
	<-done
	return err
}

func newNonce() string {
	var b [16]byte
	rand.Read(b[:]) // never fails: crypto/rand ends the program instead
	return hex.EncodeToString(b[:])
}

// environ is this process's environment with variables replaced.
func environ(set map[string]string) []string {
	var env []string
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		if _, replaced := set[name]; !replaced {
			env = append(env, v)
		}
	}
	for name, value := range set {
		env = append(env, name+"="+value)
	}
	return env
}

// tail keeps the end of what a child writes.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

const tailLimit = 2 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p...)
	if len(t.buf) > 2*tailLimit {
		t.buf = append([]byte(nil), t.buf[len(t.buf)-tailLimit:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.buf)
}
