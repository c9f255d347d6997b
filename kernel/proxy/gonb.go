package proxy

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/go-zeromq/zmq4"

	"github.com/attnb/attnb/kernel/proxy/jupyter"
	"github.com/attnb/attnb/kernel/proxy/runtimedir"
	"github.com/attnb/attnb/kernel/proxy/zmtp"
	"github.com/attnb/attnb/kernel/wire"
)

// envUserTMPDIR tells the launcher what the user's own TMPDIR is.
const envUserTMPDIR = "ATTNB_USER_TMPDIR"

// startLimit is how long gonb may take until it answers.
const startLimit = 30 * time.Second

// gonb is the child that compiles and runs cells. Its sockets are files in the runtime directory, which only this user
// can enter, so its messages are not signed.
type gonb struct {
	k      *Kernel
	cmd    *exec.Cmd
	temp   string // its TMPDIR
	codec  *jupyter.Codec
	shell  *zmtp.Peer
	stdin  *zmtp.Peer
	iopub  *zmtp.Peer
	stderr tail
	ended  chan struct{} // closed when the process has ended

	inbox    *inbox
	throttle throttle
	unswept  bool // a build was interrupted, and may have left its files; the worker's own

	mu   sync.Mutex
	call *call
}

// call is the one request that gonb works on.
type call struct {
	id      string
	publish func(*jupyter.Message) // gets what gonb publishes for it, in order
	ask     func(*jupyter.Message) // gets gonb's input requests
	reply   chan *jupyter.Message
	idle    chan struct{} // closed when gonb has published all there is
	end     sync.Once
	seen    atomic.Bool // gonb has begun to work on it
}

// startGonb starts gonb and waits until it answers.
func (k *Kernel) startGonb() (*gonb, error) {
	if k.isStopping() {
		return nil, errStopping
	}
	k.serial++
	name := fmt.Sprintf("g%d", k.serial)
	g := &gonb{k: k, codec: jupyter.NewCodec(""), ended: make(chan struct{})}
	g.inbox = newInbox(g.codec, func() { g.throttle.stop() }, func() { g.throttle.resume() })
	g.temp = k.dir.File(name + "t")
	if err := os.Mkdir(g.temp, 0o700); err != nil {
		return nil, fmt.Errorf("gonb: %w", err)
	}
	c := jupyter.Connection{Transport: "ipc", IP: k.dir.File(name), Shell: 1, Control: 2, Stdin: 3, IOPub: 4, Heartbeat: 5,
		Scheme: "hmac-sha256"}
	text, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("gonb: %w", err)
	}
	file := k.dir.File("kernel-" + k.opts.ID + ".json") // gonb takes the kernel's id from this name
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return nil, fmt.Errorf("gonb: %w", err)
	}

	g.cmd = exec.Command(k.opts.Gonb, "--kernel", file, "--raw_error")
	g.cmd.Env = environ(map[string]string{
		runtimedir.EnvRuntime: k.dir.Path,
		wire.EnvSocket:        k.device.socket,
		wire.EnvNonce:         k.nonce,
		wire.EnvStreams:       k.streams.path,
		wire.EnvControls:      k.controls.path,
		"TMPDIR":              g.temp,
		envUserTMPDIR:         os.Getenv("TMPDIR"),
		"PATH":                strings.Join(append(append([]string(nil), k.opts.Path...), os.Getenv("PATH")), string(os.PathListSeparator)),
	})
	g.cmd.Stderr, g.cmd.Stdout = &g.stderr, &g.stderr
	g.cmd.WaitDelay = time.Second
	if err := k.spawn.start(g.cmd); err != nil {
		return nil, fmt.Errorf("gonb: %w", err)
	}
	g.throttle.gonb = g.cmd.Process.Pid
	go func() {
		_ = g.cmd.Wait()
		close(g.ended)
	}()
	if err := g.connect(c); err != nil {
		g.kill()
		return nil, fmt.Errorf("gonb does not start: %w\n%s", err, g.stderr.String())
	}
	return g, nil
}

func (g *gonb) connect(c jupyter.Connection) error {
	deadline := time.Now().Add(startLimit)
	identity := jupyter.NewID() // gonb asks for input from whom it got the request
	for _, s := range []struct {
		at   **zmtp.Peer
		port int
		kind zmq4.SocketType
	}{{&g.shell, c.Shell, zmq4.Dealer}, {&g.stdin, c.Stdin, zmq4.Dealer}, {&g.iopub, c.IOPub, zmq4.Sub}} {
		network, address := c.Endpoint(s.port)
		for {
			peer, err := zmtp.Dial(network, address, s.kind, identity)
			if err == nil {
				*s.at = peer
				break
			}
			if err := g.waitABit(deadline, err); err != nil {
				return err
			}
		}
	}
	go g.receiveReplies()
	go g.receiveInput()
	go g.receiveIOPub()
	go g.dispatch()
	// A subscription takes effect some time after it was sent. When a request's end is seen, nothing is missed any more.
	for {
		c, err := g.send("kernel_info_request", map[string]any{}, func(*jupyter.Message) {}, nil)
		if err != nil {
			return err
		}
		select {
		case <-c.idle:
			return nil
		case <-g.ended:
			return errGonbDied
		case <-time.After(100 * time.Millisecond):
			if err := g.waitABit(deadline, errors.New("no answer")); err != nil {
				return err
			}
		}
	}
}

func (g *gonb) waitABit(deadline time.Time, last error) error {
	select {
	case <-g.ended:
		return errGonbDied
	case <-time.After(5 * time.Millisecond):
	}
	if time.Now().After(deadline) {
		return last
	}
	return nil
}

// send sends a request without waiting. What gonb publishes for it goes to publish.
func (g *gonb) send(kind string, content any, publish, ask func(*jupyter.Message)) (*call, error) {
	m := g.codec.New(kind, nil, content)
	c := &call{id: m.Header.MsgID, publish: publish, ask: ask, reply: make(chan *jupyter.Message, 1), idle: make(chan struct{})}
	g.mu.Lock()
	g.call = c
	g.mu.Unlock()
	return c, g.shell.Send(g.codec.Frames(m), true)
}

// do sends a request and returns the reply when gonb is done with it.
func (g *gonb) do(kind string, content any, publish, ask func(*jupyter.Message)) (*jupyter.Message, error) {
	c, err := g.send(kind, content, publish, ask)
	if err != nil {
		return nil, errGonbIsGone
	}
	// The reply and the publications come over two sockets.
	var reply *jupyter.Message
	idle := c.idle
	for reply == nil || idle != nil {
		select {
		case reply = <-c.reply:
		case <-idle:
			idle = nil
		case <-g.ended:
			// What it said before it ended may still be on its way.
			g.inbox.waitEmpty(200 * time.Millisecond)
			if !c.seen.Load() {
				return nil, errGonbIsGone
			}
			return nil, errGonbDied
		}
	}
	return reply, nil
}

func (g *gonb) receiveReplies() {
	for {
		frames, err := g.shell.Receive()
		if err != nil {
			return
		}
		m, err := g.codec.Parse(frames)
		if err != nil {
			g.k.log.Warn("gonb's reply", "error", err)
			continue
		}
		g.mu.Lock()
		c := g.call
		g.mu.Unlock()
		if c != nil && parentID(m) == c.id {
			select {
			case c.reply <- m:
			default:
			}
		}
	}
}

func (g *gonb) receiveInput() {
	for {
		frames, err := g.stdin.Receive()
		if err != nil {
			return
		}
		m, err := g.codec.Parse(frames)
		if err != nil {
			continue
		}
		g.mu.Lock()
		c := g.call
		g.mu.Unlock()
		if c != nil && c.ask != nil && parentID(m) == c.id {
			c.ask(m)
		}
	}
}

// receiveIOPub takes in what gonb publishes as fast as it comes: gonb's own queue has no bound.
func (g *gonb) receiveIOPub() {
	defer g.inbox.close()
	for {
		frames, err := g.iopub.Receive()
		if err != nil {
			return
		}
		g.inbox.put(frames)
	}
}

// dispatch hands publications to the request that they belong to.
func (g *gonb) dispatch() {
	for {
		m, ok := g.inbox.take()
		if !ok {
			return
		}
		g.mu.Lock()
		c := g.call
		g.mu.Unlock()
		mine := c != nil && parentID(m) == c.id
		if mine {
			c.seen.Store(true)
		}
		switch {
		case !mine:
			g.k.unasked(m)
		case m.Header.Type == "status":
			if strings.Contains(string(m.Content), `"idle"`) {
				c.end.Do(func() { close(c.idle) })
			}
		default:
			c.publish(m)
		}
		g.inbox.done()
	}
}

func parentID(m *jupyter.Message) string {
	var h struct {
		ID string `json:"msg_id"`
	}
	_ = json.Unmarshal(m.Parent, &h) // what is no header has no id
	return h.ID
}

// mainGo is the file that gonb made of the last cell.
func (g *gonb) mainGo() string {
	for _, name := range []string{"main.go", "main_test.go"} {
		if found, _ := filepath.Glob(filepath.Join(g.temp, "gonb_*", name)); len(found) > 0 {
			if b, err := os.ReadFile(found[0]); err == nil {
				return string(b)
			}
		}
	}
	return ""
}

// sweepBuilds deletes what interrupted builds have left: the go command that is killed leaves its work. It waits for a
// later call while gopls has a go command at work, whose files are in the same place.
func (g *gonb) sweepBuilds() {
	for _, gopls := range runtimedir.Children(g.cmd.Process.Pid) {
		for _, pid := range append(runtimedir.Children(gopls), gopls) {
			if runtimedir.Name(pid) == "go" {
				return
			}
		}
	}
	g.unswept = false
	left, _ := filepath.Glob(filepath.Join(g.temp, "go-build*"))
	for _, dir := range left {
		if os.RemoveAll(dir) != nil {
			g.unswept = true // by one who has not ended yet
		}
	}
}

// end kills gonb's own process.
func (g *gonb) end() { _ = syscall.Kill(g.cmd.Process.Pid, syscall.SIGKILL) }

// kill ends gonb and closes its sockets.
func (g *gonb) kill() {
	g.end()
	<-g.ended
	for _, p := range []*zmtp.Peer{g.shell, g.stdin, g.iopub} {
		if p != nil {
			p.Close()
		}
	}
}
