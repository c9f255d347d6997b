package proxy

import (
	"net"

	"github.com/attnb/attnb/kernel/widgets"
	"github.com/attnb/attnb/kernel/wire"
)

// controls serves the controls that cells have on the page while they run ([wire.EnvControls]). Each has a connection of its
// own, and ends with it: so it ends however its program does.
type controls struct {
	endpoint // no path: there are none
	k        *Kernel
}

func (k *Kernel) listenForControls() *controls {
	s := &controls{k: k}
	s.endpoint = k.listen("controls", s.serve)
	return s
}

// serve answers one program, a request at a time, until either end closes or the kernel shuts down.
func (s *controls) serve(conn *net.UnixConn) {
	requests := readRequests(conn, s.k)
	var in *widgets.Input
	defer func() {
		conn.Close()
		if in != nil {
			in.End()
		}
	}()
	for {
		var a wire.Answer
		select {
		case <-s.k.stop:
			return
		case r, ok := <-requests:
			switch {
			case !ok:
				return
			case r.Kind == wire.KindHello:
				a = wire.Answer{Number: wire.Version}
			case r.Kind == wire.KindOpenControl && in == nil:
				in, a = s.open(r)
			case r.Kind == wire.KindTurned && in != nil:
				select {
				case <-s.k.stop:
					return
				case <-requests: // gone: it has no other request before the answer
					return
				case <-in.Closed():
				case <-in.Turned():
					a.Control = &wire.Control{Value: in.Value()}
				}
			default:
				a = wire.Answer{Code: wire.BadRequest, Message: "this is no request about a control"}
			}
		}
		if wire.WriteFrame(conn, a.Encode()) != nil {
			return
		}
	}
}

// readRequests returns what comes from a program. The channel closes when no more will.
func readRequests(conn *net.UnixConn, k *Kernel) <-chan wire.Request {
	requests := make(chan wire.Request)
	go func() {
		defer close(requests)
		for {
			frame, err := wire.ReadFrame(conn)
			if err != nil {
				return
			}
			r, err := wire.DecodeRequest(frame)
			if err != nil {
				k.log.Warn("a request about a control", "error", err)
				return
			}
			select {
			case requests <- r:
			case <-k.stop:
				return
			}
		}
	}()
	return requests
}

// open opens the control for the cell that runs. A client that answers no input requests is a program, and gets none.
func (s *controls) open(r wire.Request) (*widgets.Input, wire.Answer) {
	s.k.mu.Lock()
	e := s.k.running
	s.k.mu.Unlock()
	switch {
	case r.Name != s.k.nonce, len(r.Controls) != 1:
		return nil, wire.Answer{Code: wire.BadRequest, Message: "not a control of a cell of this kernel"}
	case e == nil:
		return nil, wire.Answer{Code: wire.Refused, Message: "a control belongs to a cell, and none runs"}
	}
	if err := widgets.CheckInput(r.Controls[0]); err != nil {
		return nil, wire.Answer{Code: wire.BadInput, Message: err.Error()}
	}
	if !e.stdin {
		return nil, wire.Answer{}
	}
	in, err := s.k.widgets.OpenInput(e.req.msg.Raw, e.cellID(), r.Controls[0])
	if err != nil {
		return nil, wire.Answer{Code: wire.Refused, Message: err.Error()}
	}
	return in, wire.Answer{Text: in.Root().ID()}
}
