package proxy

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/attnb/attnb/kernel/proxy/cell"
	"github.com/attnb/attnb/kernel/wire"
)

// helloLimit is how long a launcher may take to say what it wants.
const helloLimit = 2 * time.Second

// streams takes over the stdin, stdout and stderr of cells' programs, which launchers offer ([wire.EnvStreams]). gonb, which
// would have them otherwise, cuts text in the middle of characters, and queues what is not taken from it without bound.
type streams struct {
	endpoint // no path: launchers leave the streams to gonb
	k        *Kernel

	mu  sync.Mutex
	out *sink // of the segment whose program may come
}

func (k *Kernel) listenForStreams() *streams {
	s := &streams{k: k}
	s.endpoint = k.listen("streams", s.answer)
	return s
}

// expect says whose program may come next; nil: nobody's.
func (s *streams) expect(out *sink) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out = out
}

// answer deals with one launcher.
func (s *streams) answer(conn *net.UnixConn) {
	files, err := receiveFiles(conn, s.k.nonce)
	if err != nil {
		s.k.log.Warn("streams of a program", "error", err)
		conn.Close()
		return
	}
	s.mu.Lock()
	out := s.out
	s.out = nil // what else comes during the segment is not the cell's own program
	s.mu.Unlock()
	switch {
	case out == nil:
	case out.e.keepsStreams():
		_, _ = conn.Write([]byte{wire.StreamsLeft})
	default:
		p := newProgram(out, conn, files)
		out.program.Store(p)
		p.run()
		return
	}
	closeFiles(files)
	conn.Close()
}

// keepsStreams reports whether gonb itself must read what the program writes: it puts the output into a file (%capture), or
// shows what gonbui sends, which must not come before what was printed earlier.
func (e *execution) keepsStreams() bool {
	if slices.ContainsFunc(e.sent.Commands, func(c cell.Command) bool { return c.Kind == '%' && c.Name() == "capture" }) {
		return true
	}
	module := moduleDir(e.k.currentGonb().temp)
	if module == "" {
		return true
	}
	text, err := os.ReadFile(filepath.Join(module, "go.mod"))
	return err != nil || strings.Contains(string(text), "github.com/janpfeifer/gonb")
}

// receiveFiles takes a program's stdin, stdout and stderr from a launcher that knows the nonce.
func receiveFiles(conn *net.UnixConn, nonce string) ([]*os.File, error) {
	_ = conn.SetDeadline(time.Now().Add(helloLimit))
	said, fds := make([]byte, 256), make([]byte, syscall.CmsgSpace(3*4))
	n, fdn, _, _, err := conn.ReadMsgUnix(said, fds)
	if err != nil {
		return nil, err
	}
	messages, err := syscall.ParseSocketControlMessage(fds[:fdn])
	if err != nil {
		return nil, err
	}
	var files []*os.File
	for _, m := range messages {
		numbers, err := syscall.ParseUnixRights(&m)
		if err != nil {
			continue
		}
		for _, fd := range numbers {
			syscall.CloseOnExec(fd)
			_ = syscall.SetNonblock(fd, true) // our end alone: a pipe's ends have flags of their own
			files = append(files, os.NewFile(uintptr(fd), "stream"))
		}
	}
	if len(files) != 3 || string(said[:n]) != nonce {
		closeFiles(files)
		return nil, fmt.Errorf("%d descriptors and %d bytes from a launcher", len(files), n)
	}
	_ = conn.SetDeadline(time.Time{})
	return files, nil
}

func closeFiles(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}
