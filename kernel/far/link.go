package far

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/yamux"

	"github.com/attnb/attnb/kernel/wire"
)

// Exit statuses of [Attach], by which a relay tells an end there from a link that is lost: 255 is ssh's own.
const (
	// ExitGone says that the device process there has ended. A relay ends with it too, and for the same reason.
	ExitGone = 76
	// exitNotFound is a shell's for a command that is not there; attnb says 2 to one that it does not know.
	exitNotFound = 127
	exitUnknown  = 2
)

// openLimit is how long it may take until the other machine answers: a GPU's first context takes seconds.
const openLimit = 90 * time.Second

// link is one ssh that runs, and the streams over it.
type link struct {
	host    string
	mux     *yamux.Session
	welcome Welcome
	cmd     *exec.Cmd
	said    *tail
	exited  chan struct{}
	silent  atomic.Bool // it takes nothing any more

	ended chan struct{} // closed when why and gone are known
	why   error
	gone  bool // the device process there has ended

	mu   sync.Mutex // one at a time asks for the relay itself
	cell int        // the number that the device process was told
}

// open starts ssh and waits for the welcome. An error says what ssh said.
func open(ctx context.Context, o Options, token string, keep []uint64) (*link, error) {
	args, err := o.Target.command(o.SSH, o.Path)
	if err != nil {
		return nil, err
	}
	l := &link{host: o.Target.Host, cmd: exec.Command(args[0], args[1:]...), said: &tail{}, exited: make(chan struct{}), ended: make(chan struct{})}
	l.cmd.Env = environ()
	l.cmd.Stderr = l.said
	in, err := l.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	// A pipe of our own: Wait closes those that it made, and may be before all is read.
	out, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	l.cmd.Stdout = write
	err = l.cmd.Start()
	write.Close()
	if err != nil {
		out.Close()
		return nil, fmt.Errorf("no link to %s: %w", l.host, err)
	}
	go func() {
		_ = l.cmd.Wait() // its status is read in end
		close(l.exited)
	}()
	ctx, cancel := context.WithTimeout(ctx, openLimit)
	defer cancel()
	giveUp := context.AfterFunc(ctx, func() { out.Close() })
	hello := Hello{Version: o.Version, Protocol: wire.Version, Token: token, Grace: o.Grace, Device: o.Target.Device, Memory: o.Memory, Keep: keep}
	reader := bufio.NewReaderSize(out, 64<<10)
	var noise string
	if err = writeHello(in, hello); err == nil || errors.Is(err, os.ErrClosed) || isBroken(err) {
		l.welcome, noise, err = readWelcome(reader) // where ssh has ended, it says why
	}
	if !giveUp() {
		err = errors.Join(ctx.Err(), err)
	}
	if err == nil {
		err = l.refused(hello)
	} else {
		in.Close()
		err = l.failed(ctx, hello, noise, err)
	}
	if err != nil {
		in.Close()
		out.Close()
		l.kill()
		return nil, err
	}
	l.mux, err = yamux.Client(pipe{reader, ends{in, out}}, settings(patienceOr(o.Patience)))
	if err != nil {
		l.kill()
		return nil, err
	}
	go l.watch()
	return l, nil
}

// ends are both ends of ssh's pipes that are ours.
type ends struct {
	io.WriteCloser
	out io.Closer
}

func (e ends) Close() error { return errors.Join(e.WriteCloser.Close(), e.out.Close()) }

// refused is why a welcome is none.
func (l *link) refused(h Hello) error {
	switch w := l.welcome; {
	case !h.same(w):
		return mismatch(l.host, h, w)
	case w.Error != "":
		return fmt.Errorf("no device process on %s: %s", l.host, w.Error)
	}
	return nil
}

// failed is why there was no welcome, in the words of ssh or of the other machine.
func (l *link) failed(ctx context.Context, h Hello, noise string, err error) error {
	select {
	case <-l.exited:
	case <-time.After(time.Second):
	}
	words := l.said.last()
	if words == "" {
		words = lastLine(noise)
	}
	status := l.status()
	switch {
	case ctx.Err() != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("no link to %s: no answer within %v. %s", l.host, openLimit, words)
	case ctx.Err() != nil:
		return ctx.Err()
	case status == exitNotFound || status == 126:
		return fmt.Errorf("no attnb on %s (%s): install attnb %s there, by ./install.sh in a clone or from a bundle, or say where it is with %s=PATH", l.host, words, h.Version, PathVariable)
	case status == exitUnknown && strings.Contains(l.said.all(), "unknown command"):
		return fmt.Errorf("the attnb on %s knows nothing of links, which version %s has: install that version there too", l.host, h.Version)
	case status > 0 && words != "":
		return fmt.Errorf("no link to %s: %s", l.host, words)
	case status > 0:
		return fmt.Errorf("no link to %s: ssh ended with status %d", l.host, status)
	}
	return fmt.Errorf("no link to %s: %w. %s", l.host, err, words)
}

// watch waits for the end of the link, and finds out why.
func (l *link) watch() {
	st, err := l.mux.AcceptStream() // none comes: it returns when the link ends
	for ; err == nil; st, err = l.mux.AcceptStream() {
		st.Close()
	}
	silent := errors.Is(err, yamux.ErrKeepAliveTimeout) || l.silent.Load()
	select {
	case <-l.exited:
	case <-time.After(time.Second):
		silent = true
		l.kill()
	}
	switch said := l.said.last(); {
	case silent:
		l.why = fmt.Errorf("%s does not answer", l.host)
	case said != "":
		l.why = errors.New(said)
	default:
		l.why = fmt.Errorf("ssh ended: %v", l.cmd.ProcessState)
	}
	l.gone = l.status() == ExitGone
	close(l.ended)
}

// kill ends ssh, which closes its pipes.
func (l *link) kill() {
	_ = l.cmd.Process.Kill() // it may have ended
	<-l.exited
}

// status is ssh's exit status, -1 while it runs or where a signal ended it.
func (l *link) status() int {
	select {
	case <-l.exited:
		return l.cmd.ProcessState.ExitCode()
	default:
		return -1
	}
}

// up says that the link carries.
func (l *link) up() bool { return !l.mux.IsClosed() }

// lost waits until it is known why the link has ended, where it has. A stream that ended with an error on a link that carries is no loss of the link.
func (l *link) lost(err error) bool {
	if errors.Is(err, yamux.ErrConnectionWriteTimeout) {
		l.silent.Store(true)
		l.mux.Close()
	}
	if !l.up() {
		<-l.ended
		return true
	}
	// The device process there may be about to end, and the link with it.
	select {
	case <-l.ended:
		return true
	case <-time.After(time.Second):
		return false
	}
}

// tell has the device process know which cell runs.
func (l *link) tell(cell int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cell == cell {
		return nil
	}
	if err := l.ask(wire.Request{Kind: wire.KindCell, Number: cell}); err != nil {
		return err
	}
	l.cell = cell
	return nil
}

// ask is one request of the relay's own.
func (l *link) ask(r wire.Request) error {
	st, err := l.stream(newID())
	if err != nil {
		return err
	}
	defer st.Close()
	if err := wire.WriteFrame(st, r.Encode()); err != nil {
		return err
	}
	if _, err := io.ReadFull(st, make([]byte, 8)); err != nil { // of requests carried: none
		return err
	}
	return success(st)
}

// stream opens a stream for a connection.
func (l *link) stream(id uint64) (*yamux.Stream, error) {
	st, err := l.mux.OpenStream()
	if err != nil {
		return nil, err
	}
	if _, err := st.Write(idBytes(id)); err != nil {
		st.Close()
		return nil, err
	}
	return st, nil
}

// release has the keeper end a connection that it holds.
func (l *link) release(id uint64) {
	if st, err := l.stream(id); err == nil {
		st.Close()
	}
}

// bye ends the device process there, and so the link. It waits no longer than limit for word of it.
func (l *link) bye(limit time.Duration) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = l.stream(bye) // where the link has gone, the device process ends after the grace time
		<-l.mux.CloseChan()
	}()
	select {
	case <-done:
	case <-time.After(limit):
	}
}
