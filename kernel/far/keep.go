package far

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/yamux"

	"github.com/attnb/attnb/kernel/peer"
	"github.com/attnb/attnb/kernel/wire"
)

// Keeping are the settings of [Keep].
type Keeping struct {
	// Socket is where links come, in a directory of mode 0700 that is this user's.
	Socket string
	// Device is the socket of the device process, and Token what its clients must know.
	Device, Token string
	Version       string
	Grace         time.Duration // without a link, until the first Hello says another
	Patience      time.Duration // how long a link may be silent; 0: 30 s
	Log           *slog.Logger  // nil: none
}

const (
	helloLimit = 10 * time.Second
	// unusedGrace is the grace of a device process that nobody has asked for anything.
	unusedGrace = time.Minute
	// beginLimit is how long the device process beside this may take to listen.
	beginLimit = 5 * time.Second
)

// keeper is the end of links on the machine of the device process.
type keeper struct {
	o        Keeping
	log      *slog.Logger
	instance string
	stop     context.CancelFunc

	joining sync.Mutex // one link at a time comes
	mu      sync.Mutex
	now     *yamux.Session
	streams *sync.WaitGroup // of now
	parked  map[uint64]*connection
	grace   time.Duration
	timer   *time.Timer
	used    bool
}

// Keep joins links to the device process until ctx ends, or there was no link for the grace time. The device process should end then.
func Keep(ctx context.Context, o Keeping) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	k := &keeper{o: o, log: o.Log, stop: stop, instance: newInstance(), parked: map[uint64]*connection{}, grace: o.Grace, streams: &sync.WaitGroup{}}
	if k.log == nil {
		k.log = slog.New(slog.DiscardHandler)
	}
	l, err := peer.Listen(o.Socket)
	if err != nil {
		return err
	}
	k.mu.Lock()
	k.idle()
	k.mu.Unlock()
	context.AfterFunc(ctx, func() { l.Close() })
	for {
		c, err := l.AcceptUnix()
		if err != nil {
			if ctx.Err() != nil {
				break
			}
			if errors.Is(err, net.ErrClosed) {
				return err
			}
			k.log.Warn("accept", "error", err)
			time.Sleep(50 * time.Millisecond)
			continue
		}
		go k.serve(c)
	}
	k.end()
	return nil
}

func newInstance() string {
	var b [8]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// lastAnswers is how long the answers of a device process that has ended may take to the relay.
const lastAnswers = 3 * time.Second

// end lets what was answered go out, and closes the link.
func (k *keeper) end() {
	k.mu.Lock()
	now, streams := k.now, k.streams
	k.timer.Stop()
	for _, c := range k.parked {
		c.close()
	}
	k.mu.Unlock()
	if now == nil {
		return
	}
	done := make(chan struct{})
	go func() {
		streams.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(lastAnswers):
	}
	now.Close()
}

// idle begins the grace time. The caller holds the lock.
func (k *keeper) idle() {
	grace := k.grace
	if !k.used {
		grace = min(grace, unusedGrace)
	}
	k.timer = time.AfterFunc(grace, func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.now == nil { // none has come at this very moment
			k.log.Info("no link for the grace time", "grace", grace)
			k.stop()
		}
	})
}

// serve is one link, from its hello to its end.
func (k *keeper) serve(c *net.UnixConn) {
	defer c.Close()
	if err := peer.Check(c); err != nil {
		k.log.Warn("refused a link", "error", err)
		return
	}
	_ = c.SetReadDeadline(time.Now().Add(helloLimit))
	in := bufio.NewReaderSize(c, 64<<10)
	h, err := readHello(in)
	_ = c.SetReadDeadline(time.Time{})
	w := Welcome{Version: k.o.Version, Protocol: wire.Version, Instance: k.instance}
	switch {
	case err != nil:
		k.log.Warn("a link without a hello", "error", err)
		return
	case subtle.ConstantTimeCompare([]byte(h.Token), []byte(k.o.Token)) != 1:
		w.Instance, w.Error = "", "it is of another kernel"
	}
	if w.Error != "" || !h.same(w) {
		_ = writeWelcome(c, w)
		return
	}
	mux, streams, err := k.join(c, in, h, w)
	if err != nil {
		k.log.Warn("a link", "error", err)
		return
	}
	for {
		st, err := mux.AcceptStream()
		if err != nil {
			break
		}
		streams.Go(func() { k.stream(mux, st) })
	}
	mux.Close()
	streams.Wait()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.now == mux {
		k.now = nil
		k.idle()
	}
}

// join puts a new link in the place of the one before, which nobody waits for any more.
func (k *keeper) join(c *net.UnixConn, in io.Reader, h Hello, w Welcome) (*yamux.Session, *sync.WaitGroup, error) {
	k.joining.Lock()
	defer k.joining.Unlock()
	k.mu.Lock()
	before, streams := k.now, k.streams
	k.mu.Unlock()
	if before != nil {
		before.Close()
		streams.Wait() // until what was idle is parked
	}
	if err := writeWelcome(c, w); err != nil {
		return nil, nil, err
	}
	mux, err := yamux.Server(pipe{in, c}, settings(patienceOr(k.o.Patience)))
	if err != nil {
		return nil, nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.timer.Stop()
	k.now, k.streams, k.grace = mux, &sync.WaitGroup{}, h.Grace
	for id, c := range k.parked {
		if !slices.Contains(h.Keep, id) {
			c.close()
			delete(k.parked, id)
		}
	}
	return mux, k.streams, nil
}

// connection is one to the device process, for a relay's.
type connection struct {
	dev     *net.UnixConn // nil: closed, because a link went while it waited for an answer
	carried uint64        // requests
}

// bye is the number of no connection: the kernel has ended.
const bye = 0

// broken is said in place of the number of requests carried.
const broken = ^uint64(0)

func (c *connection) close() {
	if c.dev != nil {
		c.dev.Close()
	}
}

// connection is the one of that number, or a new one.
func (k *keeper) connection(id uint64) (*connection, error) {
	k.mu.Lock()
	k.used = true
	c := k.parked[id]
	delete(k.parked, id)
	k.mu.Unlock()
	if c != nil {
		return c, nil
	}
	dev, err := dial(k.o.Device)
	for end := time.Now().Add(beginLimit); err != nil && time.Now().Before(end); dev, err = dial(k.o.Device) {
		time.Sleep(5 * time.Millisecond)
	}
	if err != nil {
		return nil, err
	}
	hello := wire.Request{Kind: wire.KindHello, Number: wire.Version, Name: k.o.Token}
	if err := errors.Join(wire.WriteFrame(dev, hello.Encode()), success(dev)); err != nil {
		dev.Close()
		return nil, err
	}
	return &connection{dev: dev}, nil
}

func (k *keeper) park(id uint64, c *connection) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.parked[id] = c
}
