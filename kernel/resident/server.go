package resident

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/kernel/peer"
	"github.com/attnb/attnb/kernel/resident/chain"
	"github.com/attnb/attnb/kernel/resident/checkpoint"
	"github.com/attnb/attnb/kernel/resident/judge"
	"github.com/attnb/attnb/kernel/resident/show"
	"github.com/attnb/attnb/kernel/resident/store"
	"github.com/attnb/attnb/kernel/wire"
)

// Options are the settings of Serve.
type Options struct {
	// Socket is the path to listen on, at most 107 bytes, in a directory of mode 0700 that is this user's.
	Socket string
	// Device does the work. Serve does not close it.
	Device *cudaops.Device
	// Lifeline ends Serve when reading from it ends: the read end of a pipe whose other end dies with the parent. Nil: none.
	Lifeline *os.File
	// Record is a file that tells the next device process of the same kernel which names this one held, so that it can say what became of
	// them. It is gone after an end in order. Empty: none.
	Record string
	// Token is what clients must know, as they do who have the kernel's environment ([wire.EnvNonce]). Empty: nothing.
	Token string
	// Budget bounds what is computed again in float64.
	Budget chain.Budget
	// Log receives connections, faults and panics. Nil: nothing is logged.
	Log *slog.Logger
}

// server is the state that all connections share.
type server struct {
	d       *cudaops.Device
	store   *store.Store
	gallery *show.Gallery
	tasks   tasks
	files   checkpoint.Underway
	budget  chain.Budget
	log     *slog.Logger
	token   string
	ctx     context.Context // of Serve
	stop    context.CancelFunc

	faultMu sync.Mutex
	fault   *FaultError // the device failed: this process ends
	lost    string      // what it held then, in words

	record   string
	recordMu sync.Mutex
	saved    int // changes of names that the record has
}

// Serve listens and answers until ctx ends, the lifeline ends or a client asks for shutdown; then it returns nil. Where the device
// fails it ends too, with a [FaultError], and the process should: the device is of no more use, and must not be closed. Every
// tensor is gone afterwards.
func Serve(ctx context.Context, o Options) error { return newServer(ctx, o).serve(o) }

// newServer is one that answers nobody yet.
func newServer(ctx context.Context, o Options) *server {
	log := o.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s := &server{d: o.Device, store: store.New(), log: log, token: o.Token, record: o.Record, budget: o.Budget}
	s.ctx, s.stop = context.WithCancel(ctx)
	s.gallery = show.New(s.ctx, s.d, s.store)
	return s
}

func (s *server) serve(o Options) error {
	ctx, stop, log := s.ctx, s.stop, s.log
	defer stop()
	l, err := peer.Listen(o.Socket)
	if err != nil {
		return fmt.Errorf("resident: %w", err)
	}
	lost, err := readRecord(o.Record)
	if err != nil {
		log.Warn("what an earlier process held", "error", err)
	}
	s.store.SetLost(lost)
	if o.Lifeline != nil {
		go s.watch(o.Lifeline)
	}
	go s.rest()
	var conns connections
	context.AfterFunc(ctx, func() {
		l.Close()
		if o.Lifeline != nil {
			_ = o.Lifeline.SetReadDeadline(time.Now()) // a pipe's read ends; what cannot have a deadline reads on
		}
		o.Device.Interrupt()
		conns.closeAll()
	})
	log.Info("serving", "socket", o.Socket, "backend", o.Device.Info().Backend)
	full := peer.NewTurnstile()
	defer full.Close()
	for {
		c, err := l.AcceptUnix()
		if err != nil {
			if ctx.Err() != nil {
				break
			}
			if errors.Is(err, net.ErrClosed) {
				stop()
				conns.wait()
				return fmt.Errorf("resident: %w", err)
			}
			log.Warn("accept", "error", err)
			full.TurnAway(l, err, noRoom)
			continue
		}
		conns.run(c, s.serveConn)
	}
	conns.wait()
	if s.fault != nil {
		return fmt.Errorf("resident: %w", s.fault)
	}
	s.gallery.Close()
	s.store.Clear()
	if o.Record != "" {
		if err := os.Remove(o.Record); err != nil && !errors.Is(err, fs.ErrNotExist) {
			log.Warn("names", "error", err)
		}
	}
	return nil
}

// restEvery is how long the device has to be idle before other processes get the memory that it keeps for later arrays; twice as long at most.
const restEvery = 5 * time.Second

// rest gives that back, until the server stops.
func (s *server) rest() {
	every := time.NewTicker(restEvery)
	defer every.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-every.C:
			if err := s.d.Rest(); err != nil {
				s.log.Info("memory that is kept", "error", err)
			}
		}
	}
}

// noRoom answers a client's hello where no descriptor is left for it.
func noRoom(c *net.UnixConn) {
	if _, err := wire.ReadFrame(c); err == nil {
		a := failure(wire.Errorf(wire.Refused, "the device process has no descriptor left for another connection: end programs that hold some, or raise the limit (ulimit -n)"))
		_ = wire.WriteFrame(c, a.Encode())
	}
}

// watch stops the server when the lifeline ends, or ends itself when the server does.
func (s *server) watch(f *os.File) {
	_, _ = io.Copy(io.Discard, f)
	if s.ctx.Err() == nil {
		s.log.Info("the lifeline ended")
		s.stop()
	}
}

// connections are those that are open.
type connections struct {
	mu     sync.Mutex
	open   map[*net.UnixConn]bool
	closed bool
	wg     sync.WaitGroup
}

func (cs *connections) run(c *net.UnixConn, serve func(*net.UnixConn)) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.closed {
		c.Close()
		return
	}
	if cs.open == nil {
		cs.open = map[*net.UnixConn]bool{}
	}
	cs.open[c] = true
	cs.wg.Go(func() {
		defer func() {
			cs.mu.Lock()
			delete(cs.open, c)
			cs.mu.Unlock()
			c.Close()
		}()
		serve(c)
	})
}

func (cs *connections) closeAll() {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.closed = true
	for c := range cs.open {
		// Only the reading side: an answer under way, such as the one to a shutdown, still goes out.
		_ = c.CloseRead()
		_ = c.SetWriteDeadline(time.Now().Add(2 * time.Second))
	}
}

func (cs *connections) wait() { cs.wg.Wait() }

// conn is one client.
type conn struct {
	*store.Client
	s     *server
	c     *net.UnixConn
	in    *wire.Reader // of c
	leave context.CancelFunc
	judge *judge.Judge
	now   atomic.Pointer[store.Progress] // of the request that is answered
	hello bool
	sent  bool // the answer to this request is in the stream, or some of it
}

func (s *server) serveConn(nc *net.UnixConn) {
	if err := peer.Check(nc); err != nil {
		s.log.Warn("refused a connection", "error", err)
		return
	}
	c := &conn{s: s, c: nc, in: wire.NewReader(nc)}
	ctx, leave := context.WithCancel(store.WithProgress(s.ctx, &c.now))
	defer leave()
	c.leave = leave
	c.Client = store.NewClient(ctx, s.d, s.store)
	defer c.Close()
	c.judge = judge.New(c.Client, s.gallery, s.budget)
	defer c.judge.Close()
	for {
		body, err := wire.ReadFrame(c.in)
		if err != nil {
			if err != io.EOF {
				s.log.Info("a connection ended", "error", err)
			}
			return
		}
		if err := c.serveOne(body); err != nil {
			s.log.Info("a connection ended", "error", err)
			return
		}
	}
}

// serveOne answers one request. An error means that the connection is of no more use.
func (c *conn) serveOne(body []byte) error {
	r, err := wire.DecodeRequest(body)
	if err != nil {
		return errors.Join(err, c.send(failure(wire.Errorf(wire.BadRequest, "malformed request")), nil))
	}
	data := &payload{r: c.in, n: r.DataLen}
	end := c.vigil(r)
	c.sent = false
	a, down := c.answer(r, data)
	end()
	// What a refused request brought along is still in the stream.
	if err := data.skip(); err != nil {
		return err
	}
	switch {
	case !c.sent:
		if err := c.send(a, down); err != nil {
			return err
		}
	case a.Code != wire.OK: // half a tensor is in the stream
		return errors.New(a.Message)
	}
	switch {
	case r.Kind == wire.KindShutdown && a.Code == wire.OK:
		c.s.stop()
	case !c.hello:
		return errors.New("no hello")
	}
	return nil
}

func (c *conn) send(a wire.Answer, down []float32) error {
	a.DataLen = 4 * len(down)
	if err := wire.WriteFrame(c.c, a.Encode()); err != nil {
		return err
	}
	if len(down) == 0 {
		return nil
	}
	_, err := c.c.Write(wire.FloatBytes(down))
	return err
}

func failure(err error) wire.Answer {
	var e *wire.Error
	if !errors.As(err, &e) {
		e = wire.Errorf(wire.Internal, "%v", err)
	}
	return wire.Answer{Code: e.Code, Message: e.Message}
}

// payload is the data that follows a request: n bytes are still in the stream.
type payload struct {
	r io.Reader
	n int
}

// fill reads the next values.
func (p *payload) fill(part []float32) error {
	if err := wire.FillFloats(p.r, part); err != nil {
		p.n = 0 // the stream has ended
		return err
	}
	p.n -= 4 * len(part)
	return nil
}

func (p *payload) skip() error {
	if p.n <= 0 {
		return nil
	}
	n := p.n
	p.n = 0
	_, err := io.CopyN(io.Discard, p.r, int64(n))
	return err
}
