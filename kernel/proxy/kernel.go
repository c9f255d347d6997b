// Package proxy is the kernel that Jupyter sees. It answers what gonb does not answer or answers wrongly, sends gonb one
// request at a time, puts displays and output in program order, and supervises gonb and the device process.
//
// A request goes: socket -> Kernel.receive -> queue -> worker -> gonb. What gonb publishes goes: gonb's iopub -> call ->
// sink -> our iopub. Requests on the control socket, and those that need no Go, are answered by the receiving goroutine.
package proxy

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/attnb/attnb/kernel/proxy/cell"
	"github.com/attnb/attnb/kernel/proxy/jupyter"
	"github.com/attnb/attnb/kernel/proxy/runtimedir"
	"github.com/attnb/attnb/kernel/widgets"
)

// Options say what to serve and with which programs.
type Options struct {
	Connection jupyter.Connection
	Version    string   // of attnb, for kernel_info
	Gonb       string   // path of the stock gonb
	ID         string   // of the kernel, as in Jupyter's URLs; empty: a new one
	Path       []string // directories that go before the user's PATH
	// Device is the command line of the device process, without the socket, which is appended, and with the read end of
	// the lifeline as file 3. Empty: no device process.
	Device []string
	// Interrupts stands in for interrupt requests, for clients that send SIGINT. nil: none.
	Interrupts <-chan os.Signal
	Log        *slog.Logger // nil: none
}

// Kernel is one running kernel.
type Kernel struct {
	opts  Options
	log   *slog.Logger
	codec *jupyter.Codec
	front *front
	dir   *runtimedir.Dir
	nonce string

	spawn    *spawner
	device   *device
	widgets  *widgets.Manager
	streams  *streams
	controls *controls
	queue    *queue
	stop     chan struct{} // closed once: shut down
	ending   sync.Once

	// Only the worker changes these.
	gonb   *gonb // read by others under mu
	count  int   // execution count
	memory memory
	serial int // of gonbs

	mu          sync.Mutex
	running     *execution // what the worker executes
	history     []entry
	historySize int
	notices     []string        // for the next cell
	gonbComms   map[string]bool // comms of gonb's own widgets
}

// Run serves until a shutdown request, a signal that ends ctx, or a failure to start.
func Run(ctx context.Context, opts Options) error {
	log := opts.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	k := &Kernel{opts: opts, log: log, codec: jupyter.NewCodec(opts.Connection.Key), nonce: newNonce(),
		queue: newQueue(), stop: make(chan struct{}), memory: memory{decls: cell.NewDeclarations()}, spawn: newSpawner(), gonbComms: map[string]bool{}}
	if k.opts.ID == "" {
		k.opts.ID = jupyter.NewID()
	}
	dir, err := runtimedir.Create()
	if err != nil {
		return err
	}
	k.dir = dir
	defer func() {
		if err := dir.Remove(); err != nil {
			log.Error("runtime directory", "error", err)
		}
	}()
	link := &widgetLink{k: k}
	k.widgets = widgets.New(link, link, log)
	defer link.close()
	defer k.widgets.Close()
	if k.device, err = startDevice(k); err != nil {
		return err
	}
	defer k.device.stop()
	k.streams = k.listenForStreams()
	defer k.streams.close()
	k.controls = k.listenForControls()
	defer k.controls.close()

	// Clients wait for these sockets; what they ask before gonb is there waits in the queue.
	if err := listen(opts.Connection, k); err != nil {
		return err
	}
	defer k.front.close(2 * time.Second)
	k.publish("status", nil, status("starting"))

	worker := make(chan error, 1)
	go func() { worker <- k.work() }()
	defer func() {
		// What gonb works on ends with it, and the worker then sees that it is over.
		k.shutdown()
		k.killStrays()
		select {
		case err := <-worker:
			if err != nil {
				log.Debug("the worker", "error", err)
			}
		case <-time.After(3 * time.Second):
			log.Error("the worker does not end")
		}
	}()
	orphaned := watchParent()
	for {
		select {
		case <-orphaned:
			log.Warn("the program that started this kernel is gone")
			return nil
		case <-opts.Interrupts:
			k.interrupt()
		case <-ctx.Done():
			return nil
		case <-k.stop:
			return nil
		case err := <-worker:
			worker <- nil
			return err
		}
	}
}

// shutdown ends Run.
func (k *Kernel) shutdown() {
	k.ending.Do(func() { close(k.stop) })
}

func (k *Kernel) isStopping() bool { return isClosed(k.stop) }

// work is the goroutine that takes requests from the queue, one after the other.
func (k *Kernel) work() error {
	g, err := k.startGonb()
	if err != nil {
		return err
	}
	k.setGonb(g)
	for {
		r, ok := k.queue.next(k.stop, k.gonb.ended)
		switch {
		case r != nil:
			k.handle(r)
		case !ok, k.isStopping():
			return nil
		case !k.ready():
			// It is tried again by the next request.
			if r, ok = k.queue.next(k.stop, nil); !ok {
				return nil
			}
			k.handle(r)
		}
	}
}

// ready reports whether there is a gonb to work with, starting one if need be.
func (k *Kernel) ready() bool {
	if !isClosed(k.gonb.ended) {
		return true
	}
	said, err := k.revive()
	if err != nil {
		k.log.Error("no gonb", "error", err)
		return false
	}
	k.tell(said)
	return true
}

// handle answers a request between its status messages.
func (k *Kernel) handle(r *request) {
	k.publish("status", r.msg, status("busy"))
	defer k.publish("status", r.msg, status("idle"))
	switch r.msg.Header.Type {
	case "execute_request":
		k.execute(r)
	case "complete_request":
		k.complete(r)
	case "inspect_request":
		k.inspect(r)
	}
}

func status(state string) map[string]any { return map[string]any{"execution_state": state} }

var (
	errGonbDied   = errors.New("gonb ended while it worked on a request")
	errGonbIsGone = errors.New("gonb ended before it worked on a request")
	errStopping   = errors.New("the kernel shuts down")
)

// tell says something about the kernel itself: on stderr of the cell that runs, or of the next one.
func (k *Kernel) tell(text string) {
	k.mu.Lock()
	e := k.running
	if e == nil && !slices.Contains(k.notices, text) {
		k.notices = append(k.notices, text)
	}
	k.mu.Unlock()
	if e != nil {
		k.publish("stream", e.req.msg, stream{"stderr", "attnb: " + text + "\n"})
	}
}

// tellNotices says what happened since the last cell.
func (k *Kernel) tellNotices() {
	k.mu.Lock()
	notices := k.notices
	k.notices = nil
	k.mu.Unlock()
	for _, n := range notices {
		k.tell(n)
	}
}

func errorAs[T error](err error) (T, bool) {
	var t T
	ok := errors.As(err, &t)
	return t, ok
}

func (k *Kernel) setGonb(g *gonb) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.gonb = g
}

// currentGonb is for goroutines other than the worker.
func (k *Kernel) currentGonb() *gonb {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.gonb
}

// watchParent returns a channel that closes when Jupyter, which started us, has died without saying so.
func watchParent() <-chan struct{} {
	gone := make(chan struct{})
	jupyter, parent := os.Getenv("JPY_PARENT_PID"), os.Getppid()
	switch {
	case jupyter == "":
		return gone
	case parent == 1 && jupyter != "1": // it has died already
		close(gone)
		return gone
	}
	go func() {
		for os.Getppid() == parent {
			time.Sleep(time.Second)
		}
		close(gone)
	}()
	return gone
}
