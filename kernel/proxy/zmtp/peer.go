// Package zmtp is the part of ZeroMQ that a kernel needs: ROUTER, REP and PUB sockets that serve, DEALER and SUB that
// connect. The handshake is zmq4's. Its sockets are not used, because a client that connects and says nothing blocks
// their accept loop for all others, a frame with an absurd length ends the process, and what they publish waits in a
// queue without bound. Here every connection has its own goroutines, frames are limited, and queues are bounded: a
// sender waits for a slow peer; one that takes nothing for StallLimit misses messages until it takes some again.
package zmtp

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/go-zeromq/zmq4"
	"github.com/go-zeromq/zmq4/security/null"
)

const (
	maxFrame       = 1 << 28  // bytes
	maxFrames      = 1 << 10  // parts of a message
	maxMessage     = 1 << 29  // bytes
	queueLimit     = 8 << 20  // bytes that wait for one peer; one message may exceed it
	urgentLimit    = 64 << 20 // the same for urgent messages; a peer that lets so many wait is dropped
	handshakeLimit = 10 * time.Second
)

// StallLimit is how long a sender waits for a peer that takes nothing.
const StallLimit = 10 * time.Second

// Errors of Send.
var (
	ErrClosed  = errors.New("connection closed")
	ErrStalled = errors.New("the peer takes nothing")
)

// Peer is one connection. Send may be called from several goroutines, Receive from one.
type Peer struct {
	conn     net.Conn
	in       *bufio.Reader
	identity string

	mu       sync.Mutex
	change   *sync.Cond // out, pending or closed changed
	out      [][][]byte
	pending  int // bytes in out
	progress time.Time
	closed   bool
}

// Dial connects to a serving socket, as kind (DEALER or SUB), with an identity of the caller's choice.
func Dial(network, address string, kind zmq4.SocketType, identity string) (*Peer, error) {
	conn, err := net.DialTimeout(network, address, handshakeLimit)
	if err != nil {
		return nil, err
	}
	p, err := open(conn, kind, identity, false)
	if err != nil {
		return nil, err
	}
	go p.write()
	if kind == zmq4.Sub {
		return p, p.Send([][]byte{{1}}, true) // subscribes to all topics
	}
	return p, nil
}

func open(conn net.Conn, kind zmq4.SocketType, identity string, server bool) (p *Peer, err error) {
	defer func() {
		// Inside a command the handshake trusts the lengths that the other side sends.
		if r := recover(); r != nil {
			err = fmt.Errorf("handshake: %v", r)
		}
		if err != nil {
			conn.Close()
		}
	}()
	_ = conn.SetDeadline(time.Now().Add(handshakeLimit))
	z, err := zmq4.Open(&handshake{Conn: conn, left: greetingSize}, null.Security(), kind, zmq4.SocketIdentity(identity), server, func(*zmq4.Conn) {})
	if err != nil {
		return nil, err
	}
	_ = conn.SetDeadline(time.Time{})
	p = &Peer{conn: conn, in: bufio.NewReaderSize(conn, 1<<16), identity: z.Peer.Meta["Identity"], progress: time.Now()}
	p.change = sync.NewCond(&p.mu)
	return p, nil
}

// Receive returns the next message. After an error the connection is of no use.
func (p *Peer) Receive() ([][]byte, error) {
	var frames [][]byte
	total := 0
	for {
		var head [9]byte
		if _, err := io.ReadFull(p.in, head[:2]); err != nil {
			return nil, err
		}
		flags, size := head[0], uint64(head[1])
		if flags&2 != 0 { // long
			if _, err := io.ReadFull(p.in, head[2:]); err != nil {
				return nil, err
			}
			size = binary.BigEndian.Uint64(head[1:])
		}
		total += int(min(size, maxFrame+1))
		if flags&^7 != 0 || size > maxFrame || total > maxMessage || len(frames) == maxFrames {
			return nil, fmt.Errorf("malformed or oversized frame (flags %#x, %d bytes)", flags, size)
		}
		body, err := readBody(p.in, int(size))
		if err != nil {
			return nil, err
		}
		if flags&4 != 0 { // a command, none of which changes anything here
			continue
		}
		frames = append(frames, body)
		if flags&1 == 0 { // no more
			return frames, nil
		}
	}
}

// readBody lets memory grow only with what has arrived.
func readBody(r io.Reader, size int) ([]byte, error) {
	const step = 1 << 20
	body := make([]byte, 0, min(size, step))
	for len(body) < size {
		n := min(size-len(body), step)
		at := len(body)
		body = append(body, make([]byte, n)...)
		if _, err := io.ReadFull(r, body[at:]); err != nil {
			return nil, err
		}
	}
	return body, nil
}

// Send queues a message. It waits while the queue is full, unless the message is urgent.
func (p *Peer) Send(frames [][]byte, urgent bool) error {
	size := 0
	for _, f := range frames {
		size += len(f) + 9
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for !urgent && !p.closed && len(p.out) > 0 && p.pending+size > queueLimit {
		left := StallLimit - time.Since(p.progress)
		if left <= 0 {
			return ErrStalled
		}
		timer := time.AfterFunc(left, p.change.Broadcast)
		p.change.Wait()
		timer.Stop()
	}
	if len(p.out) > 0 && p.pending+size > urgentLimit {
		p.closeLocked()
	}
	if p.closed {
		return ErrClosed
	}
	if len(p.out) == 0 {
		p.progress = time.Now()
	}
	p.out = append(p.out, frames)
	p.pending += size
	p.change.Broadcast()
	return nil
}

// Close ends the connection.
func (p *Peer) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closeLocked()
}

func (p *Peer) closeLocked() {
	p.closed = true
	p.out, p.pending = nil, 0
	p.change.Broadcast()
	p.conn.Close()
}

// drain waits until everything queued was written, at most for limit.
func (p *Peer) drain(limit time.Duration) {
	timer := time.AfterFunc(limit, p.Close)
	defer timer.Stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	for !p.closed && len(p.out) > 0 {
		p.change.Wait()
	}
}

// write is the goroutine that empties the queue.
func (p *Peer) write() {
	defer p.Close()
	for {
		p.mu.Lock()
		for !p.closed && len(p.out) == 0 {
			p.change.Wait()
		}
		if p.closed {
			p.mu.Unlock()
			return
		}
		frames := p.out[0]
		p.mu.Unlock()

		buffers := make(net.Buffers, 0, 2*len(frames))
		size := 0
		for i, f := range frames {
			var more byte
			if i < len(frames)-1 {
				more = 1
			}
			if len(f) > 255 {
				buffers = append(buffers, binary.BigEndian.AppendUint64([]byte{more | 2}, uint64(len(f))), f)
			} else {
				buffers = append(buffers, []byte{more, byte(len(f))}, f)
			}
			size += len(f) + 9
		}
		if _, err := buffers.WriteTo(p.conn); err != nil {
			return
		}

		p.mu.Lock()
		if !p.closed {
			p.out[0] = nil
			p.out = p.out[1:]
			p.pending -= size
			p.progress = time.Now()
		}
		p.change.Broadcast()
		p.mu.Unlock()
	}
}
