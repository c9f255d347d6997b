package proxy

import (
	"errors"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/attnb/attnb/kernel/wire"
)

const (
	chunk = 64 << 10 // bytes of output read at once: what a pipe holds
	// gather is how far messages are apart whose text comes in small pieces.
	gather = 2 * time.Millisecond
	// leftover bounds what is still read of a program that has ended: a pipe holds no more.
	leftover = 1 << 20
	// endLimit is how long a launcher may take to end after gonb has seen it end.
	endLimit = time.Second
)

// program is a running program of a cell whose streams the proxy has. It reads only as fast as the clients take, so
// that the program waits where they are slow.
type program struct {
	out                   *sink
	conn                  *net.UnixConn // the launcher's
	stdin, stdout, stderr *os.File
	scan                  *wire.Scanner // of stdout
	outChars, errChars    characters

	ended chan struct{} // closed when the launcher has told how the program ended, or is gone
	once  sync.Once
	read  sync.WaitGroup // until stdout, stderr and conn were read to their ends
}

func newProgram(out *sink, conn *net.UnixConn, files []*os.File) *program {
	return &program{out: out, conn: conn, stdin: files[0], stdout: files[1], stderr: files[2], scan: wire.NewScanner(out.e.k.nonce), ended: make(chan struct{})}
}

// run lets the launcher start the program.
func (p *program) run() {
	if kind := p.out.e.inputKind(); kind == noInput {
		p.stdin.Close() // it is empty
	} else {
		go p.askInput(kind == hiddenInput)
	}
	p.read.Go(func() { copyStream(p.stdout, p.takeStdout) })
	p.read.Go(func() { copyStream(p.stderr, p.takeStderr) })
	p.read.Go(p.follow)
	if _, err := p.conn.Write([]byte{wire.StreamsTaken}); err != nil {
		p.end()
	}
}

// follow acts on what the launcher says.
func (p *program) follow() {
	defer p.end()
	scan := wire.NewScanner(p.out.e.k.nonce)
	buf := make([]byte, 256)
	for {
		n, err := p.conn.Read(buf)
		for _, piece := range scan.Feed(buf[:n]) {
			p.out.hear(piece.Marker)
			if piece.Marker.Kind == wire.MarkExit {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// end has the readers stop where the output of the program stops: others may hold the streams open for longer.
func (p *program) end() {
	p.once.Do(func() {
		close(p.ended)
		p.conn.Close()
		p.stdin.Close()
		_ = p.stdout.SetReadDeadline(time.Now())
		_ = p.stderr.SetReadDeadline(time.Now())
	})
}

// enough has the launcher end a program that writes its stacks.
func (p *program) enough() {
	_, _ = p.conn.Write([]byte{wire.StreamsEnough}) // a launcher that is gone has ended it
}

// wait returns when all output of a program was published that gonb has seen end.
func (p *program) wait() {
	select {
	case <-p.ended:
	case <-time.After(endLimit):
		p.end()
	}
	p.read.Wait()
}

// copyStream reads a stream to its end, and gives deliver nil there.
func copyStream(f *os.File, deliver func([]byte)) {
	defer f.Close()
	defer deliver(nil)
	buf := make([]byte, chunk)
	var last time.Time
	for n := 0; ; {
		if d := gather - time.Since(last); d > 0 && n < chunk/2 {
			time.Sleep(d)
		}
		var err error
		if n, err = f.Read(buf); n > 0 {
			deliver(buf[:n])
			last = time.Now()
		}
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			drain(f, buf, deliver)
			return
		case err != nil:
			return
		}
	}
}

// drain reads what is there and waits for no more.
func drain(f *os.File, buf []byte, deliver func([]byte)) {
	raw, err := f.SyscallConn()
	if err != nil {
		return
	}
	_ = f.SetReadDeadline(time.Time{}) // raw reads only before it
	for total := 0; total < leftover; {
		n := 0
		err := raw.Read(func(fd uintptr) bool {
			n, _ = syscall.Read(int(fd), buf)
			return true
		})
		if err != nil || n <= 0 {
			return
		}
		deliver(buf[:n])
		total += n
	}
}

func (p *program) takeStdout(b []byte) {
	p.out.mu.Lock()
	defer p.out.mu.Unlock()
	pieces := p.scan.Feed(b)
	if b == nil {
		pieces = append(pieces, p.scan.Flush()...)
	}
	for _, piece := range pieces {
		if piece.Marker.Kind == "" {
			p.out.text("stdout", p.outChars.whole(piece.Text))
			continue
		}
		p.out.text("stdout", p.outChars.rest())
		p.out.mark(piece.Marker)
	}
	if b == nil {
		p.out.text("stdout", p.outChars.rest())
	}
}

func (p *program) takeStderr(b []byte) {
	p.out.mu.Lock()
	defer p.out.mu.Unlock()
	text := p.errChars.whole(b)
	if b == nil {
		text += p.errChars.rest()
	}
	if text != "" {
		p.out.stderr(text)
	}
}

// characters makes text of bytes that come in pieces.
type characters struct{ held []byte }

// whole returns all but a character that is still incomplete. What is no UTF-8 becomes U+FFFD, once for each run of it.
func (c *characters) whole(b []byte) string {
	if len(c.held) > 0 {
		b = append(c.held, b...)
	}
	end := len(b)
	for i := len(b) - 1; i >= 0 && i >= len(b)-utf8.UTFMax; i-- {
		if utf8.RuneStart(b[i]) {
			if !utf8.FullRune(b[i:]) {
				end = i
			}
			break
		}
	}
	c.held = append([]byte(nil), b[end:]...)
	return strings.ToValidUTF8(string(b[:end]), string(utf8.RuneError))
}

// rest returns what never became complete.
func (c *characters) rest() string {
	text := strings.ToValidUTF8(string(c.held), string(utf8.RuneError))
	c.held = nil
	return text
}
