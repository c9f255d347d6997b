package proxy

import (
	"bytes"
	"sync"
	"time"

	"github.com/go-zeromq/zmq4"

	"github.com/attnb/attnb/kernel/proxy/jupyter"
	"github.com/attnb/attnb/kernel/proxy/zmtp"
)

// front holds the sockets that Jupyter's clients connect to.
type front struct {
	shell, control, stdin, iopub, heartbeat *zmtp.Server
}

// listen opens the sockets and sets k.front, before anything is received.
func listen(c jupyter.Connection, k *Kernel) error {
	f := &front{}
	// The goroutines that receive may run before listen returns: they wait until the front is whole.
	ready := make(chan struct{})
	type socket struct {
		at      **zmtp.Server
		port    int
		kind    zmq4.SocketType
		receive func(s *zmtp.Server, from string, frames [][]byte)
	}
	for _, s := range []socket{
		{&f.heartbeat, c.Heartbeat, zmq4.Rep, func(s *zmtp.Server, from string, frames [][]byte) { _ = s.Send(from, frames) }},
		{&f.iopub, c.IOPub, zmq4.Pub, k.welcome},
		{&f.stdin, c.Stdin, zmq4.Router, k.receiveStdin},
		{&f.control, c.Control, zmq4.Router, k.receiveControl},
		{&f.shell, c.Shell, zmq4.Router, k.receiveShell},
	} {
		network, address := c.Endpoint(s.port)
		server, err := zmtp.Listen(network, address, s.kind, k.log, func(from string, frames [][]byte) {
			if <-ready; k.front == nil {
				return // another socket could not be opened: the kernel ends
			}
			s.receive(*s.at, from, frames)
		})
		if err != nil {
			close(ready)
			f.close(0)
			return err
		}
		*s.at = server
	}
	k.front = f
	close(ready)
	return nil
}

func (f *front) close(limit time.Duration) {
	var wg sync.WaitGroup
	for _, s := range []*zmtp.Server{f.shell, f.control, f.iopub, f.stdin, f.heartbeat} {
		if s != nil {
			wg.Go(func() { s.Close(limit) })
		}
	}
	wg.Wait()
}

// welcome tells a client that its subscription counts from now on.
func (k *Kernel) welcome(s *zmtp.Server, from string, frames [][]byte) {
	m := k.codec.New("iopub_welcome", nil, map[string]any{"subscription": string(frames[0])})
	m.IDs = frames
	_ = s.Send(from, k.codec.Frames(m)) // a client that is gone misses nothing
}

// publish sends a message to all clients. A parent of nil leaves its parent header empty.
func (k *Kernel) publish(kind string, parent *jupyter.Message, content any) {
	k.publishMessage(k.codec.New(kind, parent, content))
}

func (k *Kernel) publishMessage(m *jupyter.Message) {
	m.IDs = [][]byte{[]byte("kernel." + m.Header.Type)}
	urgent := m.Header.Type == "status" || m.Header.Type == "error" // what clients wait for
	k.front.iopub.Publish(k.codec.Frames(m), urgent)
}

// reply answers a request on the socket that it came from.
func (k *Kernel) reply(r *request, kind string, content any) {
	m := k.codec.New(kind, r.msg, content)
	m.IDs = r.msg.IDs
	if err := r.socket.Send(r.from, k.codec.Frames(m)); err != nil {
		k.log.Debug("a client left before its reply", "type", kind)
	}
}

// parse takes a message from a client. What is no message, or has the wrong signature, is dropped.
func (k *Kernel) parse(s *zmtp.Server, from string, frames [][]byte) (*request, bool) {
	m, err := k.codec.Parse(frames)
	if err != nil {
		k.log.Warn("dropped a message", "error", err, "frames", len(frames), "bytes", len(bytes.Join(frames, nil)))
		return nil, false
	}
	return &request{msg: m, from: from, socket: s}, true
}
