package far

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"time"

	"github.com/attnb/attnb/kernel/wire"
)

// Attachment says how [Attach] finds and starts what it attaches to.
type Attachment struct {
	Version string
	// Socket is where the keeper of the kernel with that token listens, or would.
	Socket func(token string) (string, error)
	// Start starts it. It writes to the file what keeps it from serving, and ends with [ExitHeld] where another is about to serve.
	Start func(h Hello, said *os.File) (*exec.Cmd, error)
}

// ExitHeld is the exit status of a process that was started where another one already is.
const ExitHeld = 77

// startLimit is how long a device process may take until it serves: a GPU's first context takes seconds.
const startLimit = 60 * time.Second

// Attach joins in and out, which are ssh's, to the keeper of the kernel that the first line names, and starts it where there is none. It returns the exit
// status: 0 when in ends, and [ExitGone] when the keeper does.
func Attach(in io.Reader, out io.Writer, o Attachment) int {
	reader := bufio.NewReaderSize(in, 64<<10)
	h, err := readHello(reader)
	w := Welcome{Version: o.Version, Protocol: wire.Version}
	if err == nil && !h.same(w) {
		_ = writeWelcome(out, w)
		return 1
	}
	var c *net.UnixConn
	if err == nil {
		c, err = o.reach(h)
	}
	if err == nil {
		err = writeHello(c, h)
	}
	if err != nil {
		w.Error = err.Error()
		_ = writeWelcome(out, w)
		return 1
	}
	defer c.Close()
	sent := make(chan struct{})
	go func() {
		_, _ = io.Copy(c, reader)
		close(sent)
		_ = c.CloseWrite()
	}()
	_, err = io.Copy(out, c)
	select {
	case <-sent:
		return 0
	default:
	}
	if err != nil { // of out: ssh has gone
		return 1
	}
	again, err := dial(c.RemoteAddr().String())
	if err != nil {
		return ExitGone
	}
	again.Close()
	fmt.Fprintln(os.Stderr, "attnb far: nothing came over the link for too long")
	return 1
}

// reach connects to the keeper, which it starts where need be.
func (o Attachment) reach(h Hello) (*net.UnixConn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	for ctx.Err() == nil {
		socket, err := o.Socket(h.Token)
		if err != nil {
			return nil, err
		}
		if c, err := dial(socket); err == nil {
			return c, nil
		}
		if c, err := o.start(ctx, h, socket); c != nil || err != nil {
			return c, err
		}
		time.Sleep(50 * time.Millisecond) // another one is about to serve, or has just ended
	}
	return nil, fmt.Errorf("the device process does not serve after %v", startLimit)
}

func dial(socket string) (*net.UnixConn, error) {
	return net.DialUnix("unix", nil, &net.UnixAddr{Name: socket, Net: "unix"})
}

// start starts a keeper and waits until it serves. Neither a connection nor an error: another one holds its place.
func (o Attachment) start(ctx context.Context, h Hello, socket string) (*net.UnixConn, error) {
	said, err := os.CreateTemp("", "attnb-far-*")
	if err != nil {
		return nil, err
	}
	defer said.Close()
	_ = os.Remove(said.Name())
	cmd, err := o.Start(h, said)
	if err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		if c, err := dial(socket); err == nil {
			return c, nil
		}
		select {
		case err := <-ended:
			if cmd.ProcessState.ExitCode() == ExitHeld {
				return nil, nil
			}
			text := make([]byte, tailLimit)
			n, _ := said.ReadAt(text, 0)
			if why := lastLine(string(text[:n])); why != "" {
				return nil, errors.New(why)
			}
			return nil, fmt.Errorf("it ended: %v", err)
		case <-ctx.Done():
			_ = cmd.Process.Kill()
			return nil, fmt.Errorf("the device process does not serve after %v", startLimit)
		case <-time.After(5 * time.Millisecond):
		}
	}
}
