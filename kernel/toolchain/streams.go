package toolchain

import (
	"os"
	"syscall"

	"github.com/attnb/attnb/kernel/wire"
)

// streams are what the program has as stdin, stdout and stderr, and where our own markers go.
type streams struct {
	files  [3]uintptr
	marks  int // descriptor
	nonce  string
	closes []*os.File // in this process, once the program has started
}

// answerLimit is how long the proxy may take to say that it takes the streams.
var answerLimit = syscall.Timeval{Sec: 2}

// openStreams hands the program's streams over to the proxy, so that its output reaches the notebook byte by byte as it was
// written and as fast as it is read. Where that cannot be, the program has ours.
func openStreams() *streams {
	s := &streams{files: [3]uintptr{0, 1, 2}, marks: 1, nonce: os.Getenv(wire.EnvNonce)}
	if s.nonce == "" { // not in a kernel
		return s
	}
	if path := os.Getenv(wire.EnvStreams); path != "" {
		s.handOver(path)
	}
	return s
}

// handOver replaces the streams by those that the proxy takes.
func (s *streams) handOver(path string) {
	conn, err := connect(path)
	if err != nil {
		return
	}
	ours, theirs, ok := threePipes()
	if ok {
		switch offer(conn, s.nonce, theirs) {
		case wire.StreamsTaken:
			for i, f := range ours {
				s.files[i] = f.Fd() // which also makes it block, as programs expect
			}
			s.marks, s.closes = conn, ours
			closeAll(theirs)
			return
		case wire.StreamsLeft:
			s.emptyStdin()
		}
	}
	closeAll(ours)
	closeAll(theirs)
	_ = syscall.Close(conn)
}

// emptyStdin keeps a program that reads from waiting for ever, where nobody writes.
func (s *streams) emptyStdin() {
	if null, err := os.Open(os.DevNull); err == nil {
		s.files[0] = null.Fd()
		s.closes = append(s.closes, null)
	}
}

func connect(path string) (int, error) {
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		return -1, err
	}
	syscall.CloseOnExec(fd)
	for {
		err = syscall.Connect(fd, &syscall.SockaddrUnix{Name: path})
		if err != syscall.EINTR {
			break
		}
	}
	if err == nil || err == syscall.EISCONN {
		err = syscall.SetsockoptTimeval(fd, syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &answerLimit)
	}
	if err != nil {
		_ = syscall.Close(fd)
		return -1, err
	}
	return fd, nil
}

// threePipes returns the program's ends and the proxy's.
func threePipes() (ours, theirs []*os.File, ok bool) {
	for i := range 3 {
		read, write, err := os.Pipe()
		if err != nil {
			return ours, theirs, false
		}
		if i > 0 {
			read, write = write, read
		}
		ours, theirs = append(ours, read), append(theirs, write)
	}
	return ours, theirs, true
}

// offer sends descriptors and returns the answer, or 0 where there is none.
func offer(conn int, nonce string, files []*os.File) byte {
	var fds []int
	for _, f := range files {
		fds = append(fds, int(f.Fd()))
	}
	if err := syscall.Sendmsg(conn, []byte(nonce), syscall.UnixRights(fds...), nil, 0); err != nil {
		return 0
	}
	var answer [1]byte
	for {
		if _, err := syscall.Read(conn, answer[:]); err != syscall.EINTR {
			return answer[0]
		}
	}
}

// started lets go of what only the program must have open: its output ends when it does.
func (s *streams) started() {
	closeAll(s.closes)
	s.closes = nil
}

// mark writes a marker, in one write so that no output comes between. Outside of a kernel it writes nothing.
func (s *streams) mark(kind, arg string) {
	if s.nonce != "" {
		_, _ = syscall.Write(s.marks, wire.AppendMarker(nil, s.nonce, kind, arg)) // a reader that has gone needs no marker
	}
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}
