package far

import (
	"bytes"
	"context"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/hashicorp/yamux"

	"github.com/attnb/attnb/kernel/peer"
	"github.com/attnb/attnb/kernel/resident/files"
	"github.com/attnb/attnb/kernel/wire"
)

// client is one connection to the relay. Its requests come one at a time, as package wire has it.
type client struct {
	r     *relay
	c     *net.UnixConn
	in    *wire.Reader // of c
	hello bool

	id      atomic.Uint64 // by which the keeper knows it; 0: it does not
	answers uint64        // that came under that number
	over    *link         // that st is a stream of
	st      *yamux.Stream
	back    *wire.Reader // of st
	begun   bool         // the keeper has said how many requests it had carried
}

// patience is how long a request may take before its client is watched.
const patience = 20 * time.Millisecond

// reply is an answer, as a frame's body, and what follows it.
type reply struct {
	body []byte
	down []float32
}

func answered(a wire.Answer) reply { return reply{body: a.Encode()} }

func (c *client) serve() {
	for {
		body, err := wire.ReadFrame(c.in)
		if err != nil {
			return
		}
		request, err := wire.DecodeRequest(body)
		if err != nil {
			err = wire.Errorf(wire.BadRequest, "malformed request")
			_ = c.send(failure(err))
			return
		}
		up := newUpload(c.in, request.DataLen)
		a, err := c.answer(request, body, up)
		if err != nil {
			a = failure(err)
		}
		// What a refused request brought along is still in the stream.
		if up.skip() != nil || c.send(a) != nil || !c.hello {
			return
		}
		if request.Kind == wire.KindShutdown {
			c.r.stop()
			return
		}
	}
}

func (c *client) send(a reply) error {
	if err := wire.WriteFrame(c.c, a.body); err != nil {
		return err
	}
	if len(a.down) == 0 {
		return nil
	}
	_, err := c.c.Write(wire.FloatBytes(a.down))
	return err
}

func failure(err error) reply {
	var e *wire.Error
	if !errors.As(err, &e) {
		e = wire.Errorf(wire.Internal, "%v", err)
	}
	return answered(wire.Answer{Code: e.Code, Message: e.Message})
}

// forget gives the connection up that the keeper has for this client. What the client asked for is ended with it; its next request opens another.
func (c *client) forget() {
	id, over := c.id.Swap(0), c.over
	if c.st != nil {
		c.st.Close()
	}
	c.over, c.st, c.back, c.answers = nil, nil, nil, 0
	c.r.release(id, over)
}

// answer does what a request asks: what is about this machine here, and the rest there.
func (c *client) answer(r wire.Request, body []byte, up *upload) (reply, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	left := func() {
		cancel()
		_ = c.c.CloseRead() // serve ends
	}
	if up.left == 0 {
		defer peer.Vigil(c.c, patience, left)()
	} else {
		up.sent = func() (end func()) { return peer.Vigil(c.c, patience, left) }
	}
	if !c.hello && r.Kind != wire.KindHello {
		return reply{}, wire.Errorf(wire.BadRequest, "the first message must be hello")
	}
	switch r.Kind {
	case wire.KindHello:
		return c.sayHello(r)
	case wire.KindModel:
		a, err := files.Model(r)
		return answered(a), err
	case wire.KindLoad:
		if len(r.Shape) == 0 {
			return c.load(ctx, r)
		}
	case wire.KindSave:
		if r.Path != "" {
			return c.save(ctx, r)
		}
	case wire.KindRestore:
		if r.Path != "" {
			return c.restore(ctx, r)
		}
	case wire.KindCell:
		c.r.mu.Lock()
		c.r.cell = r.Number // told with the next request that goes there
		c.r.mu.Unlock()
		return answered(wire.Answer{}), nil
	case wire.KindStatus:
		return c.status(ctx, body)
	case wire.KindShutdown: // the relay's end is that of the device process there
		return answered(wire.Answer{}), nil
	case wire.KindInterrupt:
		c.r.files.Interrupt()
		if !c.r.linked() { // what ran there ended with the link
			return answered(wire.Answer{}), nil
		}
	}
	return c.pass(ctx, name(r), body, up)
}

// name is what a request is called in a message.
func name(r wire.Request) string {
	switch r.Kind {
	case wire.KindRun:
		return r.Op.String()
	case wire.KindUpload:
		return "FromSlice"
	case wire.KindLoad:
		return "Load"
	case wire.KindDownload:
		return "Download"
	}
	return "request"
}

func (c *client) sayHello(r wire.Request) (reply, error) {
	if r.Number != wire.Version {
		return reply{}, wire.Errorf(wire.BadRequest, "the device process speaks version %d, this program version %d: restart the kernel", wire.Version, r.Number)
	}
	if t := c.r.o.Token; t != "" && subtle.ConstantTimeCompare([]byte(r.Name), []byte(t)) != 1 {
		return reply{}, wire.Errorf(wire.BadRequest, "the device process is of another kernel: this program does not know its token")
	}
	c.hello = true
	return answered(wire.Answer{Number: wire.Version, Text: "ssh"}), nil
}

// load reads a file, or the one array of it that is asked for, and sends its values.
func (c *client) load(ctx context.Context, r wire.Request) (reply, error) {
	r, values, err := files.Load(r)
	if err != nil {
		return reply{}, err
	}
	r.Path, r.DataLen = filepath.Base(r.Path), 4*len(values) // which directories there are here is nobody's business there
	return c.pass(ctx, "Load", r.Encode(), newUpload(bytes.NewReader(wire.FloatBytes(values)), r.DataLen))
}

// connecting is how long a status waits for a link before it says that there is none yet.
const connecting = time.Second

// status is that of the device process there, with the way to it.
func (c *client) status(ctx context.Context, body []byte) (reply, error) {
	if !c.r.linked() {
		a := c.r.join()
		select {
		case <-a.done:
			if a.err != nil {
				return reply{}, a.err
			}
		case <-time.After(connecting):
			host := c.r.o.Target.Host
			return answered(wire.Answer{Status: &wire.Status{Backend: "ssh", Device: host + ", which does not answer yet",
				Running: "ssh " + host, RunningFor: int(time.Since(a.began).Milliseconds())}}), nil
		}
	}
	got, err := c.pass(ctx, "Status", body, &upload{})
	if err != nil {
		return reply{}, err
	}
	a, err := wire.DecodeAnswer(got.body)
	if err != nil || a.Status == nil {
		return got, nil
	}
	way := "through ssh"
	if took, err := c.over.mux.Ping(); err == nil {
		way += fmt.Sprintf(", %.3g ms away", float64(took.Microseconds())/1e3)
	}
	a.Status.Device += ", on " + c.r.o.Target.Host + " " + way
	return answered(a), nil
}

// pass has the other machine answer. A request that a lost link took along before it came there is sent again over the next one; what was under way there, or
// was answered by nobody's hearing, is an error.
func (c *client) pass(ctx context.Context, what string, body []byte, up *upload) (reply, error) {
	var lost error
	for {
		l, err := c.r.link(ctx)
		if err != nil {
			return reply{}, prefixed(what, err)
		}
		a, err := c.exchange(ctx, l, body, up)
		switch {
		case err == nil:
			return a, nil
		case up.err != nil, ctx.Err() != nil:
			c.forget() // the client has gone, or is interrupted
			return reply{}, errors.Join(up.err, ctx.Err())
		case err == errStale:
			c.forget()
			return reply{}, lost
		}
		lost = c.r.lost(l, what, err)
		if l.up() || l.gone || !up.rewind() {
			c.forget()
			return reply{}, lost
		}
		c.over, c.st = nil, nil // the stream has ended with it
	}
}

// errStale says that the keeper has heard of a request before.
var errStale = errors.New("a request that was under way")

func prefixed(what string, err error) error {
	var e *wire.Error
	if errors.As(err, &e) {
		return wire.Errorf(e.Code, "%s: %s", what, e.Message)
	}
	return err
}

// exchange sends one request over a link, and reads its answer.
func (c *client) exchange(ctx context.Context, l *link, body []byte, up *upload) (a reply, err error) {
	c.r.mu.Lock()
	cell := c.r.cell
	c.r.mu.Unlock()
	if err := l.tell(cell); err != nil {
		return a, err
	}
	if c.over != l {
		if err := c.open(l); err != nil {
			return a, err
		}
	}
	st := c.st
	defer context.AfterFunc(ctx, func() {
		st.Close()
		_ = st.SetReadDeadline(time.Unix(1, 0))
	})()
	if err := wire.WriteFrame(st, body); err != nil {
		return a, err
	}
	if up.left > 0 {
		if err := up.send(st); err != nil {
			return a, err
		}
		if up.sent != nil {
			defer up.sent()()
		}
	}
	if _, err := c.carried(); err != nil {
		return a, err
	}
	if a.body, err = wire.ReadFrame(c.back); err != nil {
		return a, err
	}
	said, err := wire.DecodeAnswer(a.body)
	if err == nil && said.DataLen > 0 {
		a.down, err = wire.ReadFloats(c.back, said.DataLen)
	}
	if err == nil {
		c.answers++
	}
	return a, err
}

// open opens a stream for this client. Where the keeper has carried more of its requests than were answered, or closed its connection, it is an errStale.
func (c *client) open(l *link) error {
	again := c.id.Load() != 0
	if !again {
		c.id.Store(newID())
	}
	st, err := l.stream(c.id.Load())
	if err != nil {
		return err
	}
	c.over, c.st, c.back, c.begun = l, st, wire.NewReader(st), false
	if !again {
		return nil
	}
	n, err := c.carried()
	if err == nil && n != c.answers {
		err = errStale
	}
	return err
}

// carried is how many requests the keeper had carried when the stream began. It says so once.
func (c *client) carried() (n uint64, err error) {
	if c.begun {
		return 0, nil
	}
	var head [8]byte
	if _, err := io.ReadFull(c.back, head[:]); err != nil {
		return 0, err
	}
	c.begun = true
	return binary.LittleEndian.Uint64(head[:]), nil
}

// upload is what follows a request.
type upload struct {
	r     io.Reader
	whole int64
	left  int64
	err   error // of r
	// sent begins the watch of the client, which cannot be watched while it sends.
	sent func() (end func())
}

func newUpload(r io.Reader, n int) *upload { return &upload{r: r, whole: int64(n), left: int64(n)} }

// send copies it to a link.
func (u *upload) send(w io.Writer) error {
	buf := make([]byte, min(u.left, 64<<10))
	for u.left > 0 {
		n, err := u.r.Read(buf[:min(int64(len(buf)), u.left)])
		u.left -= int64(n)
		if err == io.EOF && u.left > 0 {
			err = io.ErrUnexpectedEOF
		}
		if err != nil && u.left > 0 {
			u.err = err
			return err
		}
		if _, err := w.Write(buf[:n]); err != nil {
			return err
		}
	}
	return nil
}

// rewind has the next send begin at the beginning, where that can be.
func (u *upload) rewind() bool {
	if u.r == nil || u.whole == 0 {
		return true
	}
	from, ok := u.r.(io.Seeker)
	if !ok {
		return false
	}
	_, err := from.Seek(0, io.SeekStart)
	u.left = u.whole
	return err == nil
}

// skip reads what was not sent.
func (u *upload) skip() error {
	if u.err != nil || u.left <= 0 {
		return u.err
	}
	_, err := io.CopyN(io.Discard, u.r, u.left)
	return err
}
