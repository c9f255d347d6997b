package proxy

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/attnb/attnb/kernel/proxy/runtimedir"
	"github.com/attnb/attnb/kernel/wire"
)

// device supervises the device process and talks to it.
type device struct {
	k        *Kernel
	socket   string
	lifeline *os.File // the write end: the device process ends, and cleans up, when it closes

	mu       sync.Mutex
	cmd      *exec.Cmd
	ended    chan struct{}
	conn     *wire.Conn
	stopping bool
	started  time.Time
	pause    time.Duration // before the next start
}

// restPause is the longest pause before a device process that keeps dying is started again.
const restPause = 10 * time.Second

// deviceFault is the exit status of a device process whose device failed (resident.ExitFault): only a fresh process can use it again.
const deviceFault = 75

// deviceGone is the exit status of a relay to another machine (far.ExitGone) whose device process has gone; of a relay that ends in any other way, the tensors are
// kept there.
const deviceGone = 76

// farAway is the machine of the device process, empty where that is this one.
func farAway() string {
	if spec := os.Getenv("ATTNB_DEVICE"); strings.HasPrefix(spec, "ssh://") {
		return spec
	}
	return ""
}

// epitaph says what the end of a device process means.
func epitaph(status int, err error, away string) string {
	switch {
	case status == deviceFault:
		return "the device failed: every tensor is lost. A fresh device process starts"
	case away != "" && status == deviceGone:
		return fmt.Sprintf("the device process at %s is gone: every tensor is lost. A fresh one starts", away)
	case away != "":
		return fmt.Sprintf("the relay to %s ended (%v). It starts anew, and finds the tensors that have a name", away, err)
	}
	return fmt.Sprintf("the device process ended (%v): every tensor is lost. It starts anew", err)
}

// startDevice starts the device process; cells find its socket in their environment.
func startDevice(k *Kernel) (*device, error) {
	d := &device{k: k, socket: k.dir.File("device")}
	if len(k.opts.Device) == 0 {
		return d, nil
	}
	return d, d.launch()
}

func (d *device) launch() error {
	read, write, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("device process: %w", err)
	}
	defer read.Close()
	args := append(append([]string(nil), d.k.opts.Device...), "--socket", d.socket, "--runtime", d.k.dir.Path)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = environ(map[string]string{runtimedir.EnvRuntime: d.k.dir.Path, wire.EnvNonce: d.k.nonce})
	cmd.ExtraFiles = []*os.File{read}
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = deviceAttr()
	if err := cmd.Start(); err != nil {
		write.Close()
		return fmt.Errorf("device process: %w", err)
	}
	ended := make(chan struct{})
	d.mu.Lock()
	if d.lifeline != nil {
		d.lifeline.Close()
	}
	d.lifeline, d.cmd, d.ended, d.conn, d.started = write, cmd, ended, nil, time.Now()
	d.mu.Unlock()
	go d.watch(cmd, ended)
	return nil
}

// watch starts the device process anew when it has died, and says that the tensors are gone.
func (d *device) watch(cmd *exec.Cmd, ended chan struct{}) {
	err := cmd.Wait()
	close(ended)
	d.mu.Lock()
	stopping := d.stopping
	d.mu.Unlock()
	if stopping {
		return
	}
	d.k.log.Error("the device process ended", "error", err)
	d.k.tell(epitaph(cmd.ProcessState.ExitCode(), err, farAway()))
	// One that dies at once must not use up the machine.
	d.mu.Lock()
	if time.Since(d.started) > restPause {
		d.pause = 0
	}
	d.pause = min(max(2*d.pause, restPause/64), restPause)
	pause := d.pause
	d.mu.Unlock()
	time.Sleep(pause)
	d.mu.Lock()
	stopping = d.stopping
	d.mu.Unlock()
	if stopping {
		return
	}
	if err := d.launch(); err != nil {
		d.k.log.Error("the device process does not start", "error", err)
	}
}

// How long a request waits for a device process that has just been started, and may have a GPU to set up, and for one that
// is about to be started again.
const (
	wakeLimit  = 30 * time.Second
	awaitLimit = 2 * time.Second
)

// connection returns the connection to the device process, made when first needed or after it was lost.
func (d *device) connection() (*wire.Conn, error) {
	for began := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		d.mu.Lock()
		conn, ended, started, stopping := d.conn, d.ended, d.started, d.stopping
		d.mu.Unlock()
		if conn != nil {
			return conn, nil
		}
		conn, err := d.dial()
		if err == nil {
			d.mu.Lock()
			d.conn = conn
			d.mu.Unlock()
			return conn, nil
		}
		deadline := started.Add(wakeLimit)
		if isClosed(ended) {
			deadline = began.Add(awaitLimit)
		}
		if ended == nil || stopping || time.Now().After(deadline) {
			return nil, err
		}
	}
}

// dial makes a connection of its own.
func (d *device) dial() (*wire.Conn, error) { return wire.DialAs(d.socket, d.k.nonce) }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (d *device) drop(conn *wire.Conn) {
	conn.Close()
	d.mu.Lock()
	if d.conn == conn {
		d.conn = nil
	}
	d.mu.Unlock()
}

// display fetches what a cell wants shown.
func (d *device) display(id string) (v wire.Display, err error) {
	err = d.do(func(c *wire.Conn) error {
		v, err = c.Display(id)
		return err
	})
	return v, err
}

// cell tells the device process which cell runs, for the lineage of tensors.
func (d *device) cell(number int) {
	if len(d.k.opts.Device) == 0 {
		return
	}
	if err := d.do(func(c *wire.Conn) error { return c.Cell(number) }); err != nil {
		d.k.log.Warn("the device process does not answer", "error", err)
	}
}

// stop ends the device process.
func (d *device) stop() {
	d.mu.Lock()
	d.stopping = true
	conn, cmd, ended, lifeline := d.conn, d.cmd, d.ended, d.lifeline
	d.mu.Unlock()
	if cmd == nil {
		return
	}
	if conn != nil {
		conn.Close()
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-ended:
	case <-time.After(time.Second):
		_ = cmd.Process.Kill()
		<-ended
	}
	lifeline.Close()
}

func (d *device) pid() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cmd == nil {
		return 0
	}
	return d.cmd.Process.Pid
}

// interrupt stops the op that the device works on: whoever asked for it is being stopped too. It has a connection of its
// own, because the other one may be waiting for that very op.
func (d *device) interrupt() {
	if d.pid() == 0 {
		return
	}
	conn, err := d.dial()
	if err != nil {
		d.k.log.Warn("the device process cannot be interrupted", "error", err)
		return
	}
	defer conn.Close()
	if err := conn.Interrupt(); err != nil {
		d.k.log.Warn("the device process cannot be interrupted", "error", err)
	}
}

// alone is a request over a connection of its own: it may take long, and does not keep what it is handed.
func (d *device) alone(r wire.Request) (wire.Answer, error) {
	if _, err := d.connection(); err != nil { // until there is a device process
		return wire.Answer{}, err
	}
	conn, err := d.dial()
	if err != nil {
		// The socket may have been removed: the connection that there is outlives it.
		var a wire.Answer
		err = d.do(func(c *wire.Conn) (err error) {
			a, err = c.Do(r)
			return err
		})
		return a, err
	}
	defer conn.Close()
	return conn.Do(r)
}

// do asks the device process something, over the connection that is there or over a new one.
func (d *device) do(ask func(*wire.Conn) error) error {
	for attempt := 0; ; attempt++ {
		conn, err := d.connection()
		if err != nil {
			return err
		}
		if err = ask(conn); err == nil {
			return nil
		}
		refused, ok := errorAs[*wire.Error](err)
		if ok && refused.Code != wire.LinkLost || attempt > 0 {
			return err
		}
		d.drop(conn) // of an earlier device process, or of a link that was lost
	}
}
