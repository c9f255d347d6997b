package far

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"os"
	"strings"
	"sync"
	"syscall"

	"github.com/attnb/attnb/kernel/wire"
)

// markOfRuntime marks the processes of a kernel, which are killed together (runtimedir.EnvRuntime). ssh is not to be one: it ends with the relay, by its pipe.
const markOfRuntime = "ATTNB_RUNTIME="

// environ is this process's environment for ssh, without what only a kernel's own processes are to know.
func environ() []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, markOfRuntime) && !strings.HasPrefix(v, wire.EnvNonce+"=") {
			env = append(env, v)
		}
	}
	return env
}

func isBroken(err error) bool { return errors.Is(err, syscall.EPIPE) }

// newID is a connection's number. It is random, so that a relay's differ from those of one before it.
func newID() uint64 {
	var b [8]byte
	rand.Read(b[:]) // never fails: crypto/rand ends the program instead
	return max(binary.LittleEndian.Uint64(b[:]), bye+1)
}

func idBytes(id uint64) []byte { return binary.LittleEndian.AppendUint64(nil, id) }

// tail keeps the end of what ssh says.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

const tailLimit = 4 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p...)
	if len(t.buf) > 2*tailLimit {
		t.buf = append([]byte(nil), t.buf[len(t.buf)-tailLimit:]...)
	}
	return len(p), nil
}

func (t *tail) all() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.buf)
}

func (t *tail) last() string { return lastLine(t.all()) }

// lastLine is the last line that says anything, with nothing in it that moves a terminal's cursor.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	line := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, strings.TrimSpace(lines[len(lines)-1]))
	const most = 300
	if len(line) > most {
		line = strings.ToValidUTF8(line[:most], "") + "..."
	}
	return line
}
