package far

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/attnb/attnb/kernel/peer"
	"github.com/attnb/attnb/kernel/resident/checkpoint"
	"github.com/attnb/attnb/kernel/wire"
)

// Options are the settings of [Relay].
type Options struct {
	// Socket is the path to listen on, in a directory of mode 0700 that is this user's.
	Socket string
	// Token is what clients must know, and what names the kernel there. Empty: clients must know nothing, and no later relay finds the device process again.
	Token string
	// Version is that of this attnb. The other machine must have the same.
	Version string
	Target  Target
	SSH     []string // ssh and the user's options for it; empty: ssh
	Path    string   // of attnb there; empty: where it usually is
	// Grace is how long the tensors are kept there without a link.
	Grace time.Duration
	// Memory is ATTNB_MEMORY for the device process there; empty: what it is there.
	Memory string
	// Patience is how long a link may be silent; 0: 30 s.
	Patience time.Duration
	// Lifeline ends the relay when reading from it ends. Nil: none.
	Lifeline *os.File
	Log      *slog.Logger // nil: none
}

// patienceOr is a link's patience where 0 means the usual one.
func patienceOr(d time.Duration) time.Duration {
	if d == 0 {
		return 30 * time.Second
	}
	return d
}

// GoneError ends a relay: the device process there is not the one that had the kernel's tensors.
type GoneError struct{ Host, Why string }

func (e *GoneError) Error() string {
	return fmt.Sprintf("the device process on %s is gone (%s): every tensor is lost. A fresh one starts", e.Host, e.Why)
}

// relay is the state that all connections share.
type relay struct {
	o     Options
	token string // that the keeper knows
	log   *slog.Logger
	ctx   context.Context // ends first
	stop  context.CancelFunc
	life  context.Context // of links, which the last words go over
	files checkpoint.Underway

	mu       sync.Mutex
	clients  map[*client]bool
	up       *link
	attempt  *attempt
	instance string // of the device process that has the tensors
	lostAt   time.Time
	cell     int
	gone     *GoneError
	wg       sync.WaitGroup
}

// attempt is one at a link, for all who wait for it.
type attempt struct {
	began time.Time
	done  chan struct{}
	l     *link
	err   error
}

// Relay serves until ctx ends, the lifeline ends, or a client asks for shutdown, and then has the device process on the other machine end. Where that has lost its
// tensors, it returns a [*GoneError], and a new relay should start.
func Relay(ctx context.Context, o Options) error {
	r := &relay{o: o, token: o.Token, log: o.Log, clients: map[*client]bool{}}
	if r.token == "" {
		r.token = newInstance() + newInstance()
	}
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	r.ctx, r.stop = context.WithCancel(ctx)
	defer r.stop()
	var over context.CancelFunc
	r.life, over = context.WithCancel(context.Background())
	defer over()
	if _, err := o.Target.command(o.SSH, o.Path); err != nil {
		return err
	}
	l, err := peer.Listen(o.Socket)
	if err != nil {
		return err
	}
	if o.Lifeline != nil {
		go func() {
			_, _ = io.Copy(io.Discard, o.Lifeline)
			r.stop()
		}()
	}
	context.AfterFunc(r.ctx, func() {
		l.Close()
		if o.Lifeline != nil {
			_ = o.Lifeline.SetReadDeadline(time.Now()) // a pipe's read ends; what cannot have a deadline reads on
		}
	})
	r.join()
	full := peer.NewTurnstile()
	defer full.Close()
	for {
		c, err := l.AcceptUnix()
		if err != nil {
			if r.ctx.Err() != nil {
				break
			}
			if errors.Is(err, net.ErrClosed) {
				return err
			}
			r.log.Warn("accept", "error", err)
			full.TurnAway(l, err, noRoom)
			continue
		}
		r.add(c)
	}
	r.end(over)
	if r.gone != nil {
		return r.gone
	}
	return nil
}

// noRoom answers a client's hello where no descriptor is left for it.
func noRoom(c *net.UnixConn) {
	if _, err := wire.ReadFrame(c); err == nil {
		a := wire.Answer{Code: wire.Refused, Message: "the relay has no descriptor left for another connection: end programs that hold some, or raise the limit (ulimit -n)"}
		_ = wire.WriteFrame(c, a.Encode())
	}
}

// byeLimit is how long the end of the device process there may take. Who waits for the relay kills it after a second.
const byeLimit = 700 * time.Millisecond

// end has the device process there end, where it can be reached soon, and closes all connections.
func (r *relay) end(over context.CancelFunc) {
	limit := time.Now().Add(byeLimit)
	r.mu.Lock()
	for c := range r.clients {
		// Only the reading side: an answer under way still goes out.
		_ = c.c.CloseRead()
		_ = c.c.SetWriteDeadline(time.Now().Add(2 * time.Second))
	}
	reach := r.gone == nil && (r.instance != "" || r.attempt != nil) // there is something to end
	r.mu.Unlock()
	if reach {
		ctx, cancel := context.WithDeadline(context.Background(), limit)
		if up, err := r.link(ctx); err == nil {
			up.bye(time.Until(limit))
		}
		cancel()
	}
	over()
	r.mu.Lock()
	up := r.up
	r.mu.Unlock()
	if up != nil {
		up.mux.Close()
	}
	r.wg.Wait()
}

func (r *relay) add(nc *net.UnixConn) {
	c := &client{r: r, c: nc, in: wire.NewReader(nc)}
	r.mu.Lock()
	r.clients[c] = true
	r.mu.Unlock()
	r.wg.Go(func() {
		defer nc.Close()
		if err := peer.Check(nc); err != nil {
			r.log.Warn("refused a connection", "error", err)
		} else {
			c.serve()
		}
		r.mu.Lock()
		delete(r.clients, c)
		r.mu.Unlock()
		c.forget()
	})
}

// join returns the attempt at a link that is under way, or begins one.
func (r *relay) join() *attempt {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.attempt == nil {
		r.attempt = &attempt{began: time.Now(), done: make(chan struct{})}
		r.wg.Add(1)
		go r.try(r.attempt)
	}
	return r.attempt
}

// link is one that carries: the one there is, or a new one.
func (r *relay) link(ctx context.Context) (*link, error) {
	r.mu.Lock()
	up, gone := r.up, r.gone
	r.mu.Unlock()
	if gone != nil {
		return nil, wire.Errorf(wire.DeviceFault, "%v", gone)
	}
	if up != nil && up.up() {
		return up, nil
	}
	if up != nil {
		<-up.ended
	}
	a := r.join()
	select {
	case <-a.done:
		return a.l, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (r *relay) try(a *attempt) {
	defer r.wg.Done()
	defer close(a.done)
	keep := r.connections()
	a.l, a.err = open(r.life, r.o, r.token, keep)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.attempt = nil
	switch {
	case a.err == nil && r.instance != "" && r.instance != a.l.welcome.Instance:
		a.l.mux.Close()
		a.err = r.fail("it has started anew since")
	case a.err == nil:
		r.instance, r.up = a.l.welcome.Instance, a.l
		now := r.ids()
		for _, id := range keep {
			if !slices.Contains(now, id) {
				go a.l.release(id)
			}
		}
		r.wg.Add(1)
		go r.watch(a.l)
	default:
		r.log.Warn("no link", "error", a.err)
		a.err = wire.Errorf(wire.LinkLost, "%v%s", a.err, r.kept())
	}
}

// connections are the numbers of those that the keeper is to keep.
func (r *relay) connections() []uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ids()
}

// release tells the keeper that a connection has ended, whose stream, if any, was one of over. A link that is being made does so itself.
func (r *relay) release(id uint64, over *link) {
	r.mu.Lock()
	up := r.up
	r.mu.Unlock()
	if id != 0 && up != nil && up != over {
		up.release(id)
	}
}

// ids is connections. The caller holds the lock.
func (r *relay) ids() (ids []uint64) {
	for c := range r.clients {
		if id := c.id.Load(); id != 0 {
			ids = append(ids, id)
		}
	}
	return ids
}

// fail ends the relay: the tensors are gone. The caller holds the lock.
func (r *relay) fail(why string) error {
	if r.gone == nil {
		r.gone = &GoneError{r.o.Target.Host, why}
		r.log.Error("the device process there is gone", "reason", why)
		r.stop()
	}
	return wire.Errorf(wire.DeviceFault, "%v", r.gone)
}

// watch waits for the end of a link, and makes another.
func (r *relay) watch(l *link) {
	defer r.wg.Done()
	<-l.ended
	if r.ctx.Err() != nil {
		return
	}
	r.mu.Lock()
	gone := r.drop(l) != nil
	lostAt := r.lostAt
	r.mu.Unlock()
	r.log.Warn("the link is lost", "reason", l.why)
	if gone {
		return
	}
	for pause := time.Second; time.Since(lostAt) < r.o.Grace; pause = min(2*pause, 15*time.Second) {
		a := r.join()
		select {
		case <-a.done:
			if a.err == nil {
				return
			}
		case <-r.ctx.Done():
			return
		}
		select {
		case <-time.After(pause):
		case <-r.ctx.Done():
			return
		}
	}
}

// drop notes that a link has ended. An error says that the tensors are gone. The caller holds the lock.
func (r *relay) drop(l *link) error {
	if r.up == l {
		r.up, r.lostAt = nil, time.Now()
	}
	if l.gone {
		return r.fail(l.why.Error())
	}
	return nil
}

// kept says what became of the tensors while there is no link; nothing where there are none. The caller holds the lock.
func (r *relay) kept() string {
	if r.instance == "" {
		return ""
	}
	until := r.lostAt.Add(r.o.Grace)
	if time.Now().After(until) {
		return fmt.Sprintf(". Tensors were kept there until %s (%s=%v)", until.Format(time.TimeOnly), GraceVariable, r.o.Grace)
	}
	return fmt.Sprintf(". Tensors are kept there until %s (%s=%v): run the cell again", until.Format(time.TimeOnly), GraceVariable, r.o.Grace)
}

// lost is what becomes of a request whose stream has ended with an error.
func (r *relay) lost(l *link, what string, err error) error {
	if !l.lost(err) {
		return wire.Errorf(wire.LinkLost, "%s: the device process on %s closed the connection", what, l.host)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if gone := r.drop(l); gone != nil {
		return gone
	}
	return wire.Errorf(wire.LinkLost, "%s: the link to %s was lost: %v%s", what, l.host, l.why, r.kept())
}

// linked says that there is a link.
func (r *relay) linked() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.up != nil && r.up.up()
}
