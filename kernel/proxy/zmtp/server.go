package zmtp

import (
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/go-zeromq/zmq4"
)

// Server is a serving socket of one kind.
type Server struct {
	listener net.Listener
	kind     zmq4.SocketType
	receive  func(from string, frames [][]byte)
	log      *slog.Logger

	mu     sync.Mutex
	peers  map[string]*Peer          // by identity
	topics map[*Peer]map[string]bool // PUB: what each peer subscribed to
	serial int
	closed bool
}

// Listen serves a socket. receive is called with each message, one at a time for each peer; the identity of the
// peer addresses the answer. A PUB receives the topic of each subscription, before anything of that topic is published to the peer.
func Listen(network, address string, kind zmq4.SocketType, log *slog.Logger, receive func(from string, frames [][]byte)) (*Server, error) {
	l, err := net.Listen(network, address)
	if err != nil {
		return nil, fmt.Errorf("%s socket: %w", kind, err)
	}
	s := &Server{listener: l, kind: kind, receive: receive, log: log,
		peers: map[string]*Peer{}, topics: map[*Peer]map[string]bool{}}
	go s.accept()
	return s, nil
}

// Addr is where the socket listens.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

func (s *Server) accept() {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			s.mu.Lock()
			closed := s.closed
			s.mu.Unlock()
			if closed {
				return
			}
			s.log.Warn("accept", "socket", s.kind, "error", err)
			time.Sleep(50 * time.Millisecond) // out of descriptors: others may be closed meanwhile
			continue
		}
		go s.serve(conn)
	}
}

func (s *Server) serve(conn net.Conn) {
	p, err := open(conn, s.kind, "", true)
	if err != nil {
		s.log.Warn("refused a connection", "socket", s.kind, "error", err)
		return
	}
	id, ok := s.add(p)
	if !ok {
		p.Close()
		return
	}
	go p.write()
	defer s.remove(id, p)
	for {
		frames, err := p.Receive()
		if err != nil {
			if strings.Contains(err.Error(), "malformed") {
				s.log.Warn("dropped a connection", "socket", s.kind, "error", err)
			}
			return
		}
		if s.kind == zmq4.Pub {
			s.subscribe(id, p, frames)
		} else {
			s.receive(id, frames)
		}
	}
}

func (s *Server) add(p *Peer) (id string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id = p.identity
	if id == "" {
		// A zero byte begins what a server makes up: no client may choose it.
		s.serial++
		id = fmt.Sprintf("\x00%d", s.serial)
	}
	if old := s.peers[id]; old != nil {
		old.Close() // the client came back before the old connection was seen to end
	}
	s.peers[id] = p
	return id, !s.closed
}

func (s *Server) remove(id string, p *Peer) {
	p.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.peers[id] == p {
		delete(s.peers, id)
	}
	delete(s.topics, p)
}

func (s *Server) subscribe(id string, p *Peer, frames [][]byte) {
	if len(frames) != 1 || len(frames[0]) == 0 || frames[0][0] > 1 {
		return
	}
	topic := string(frames[0][1:])
	subscribes := frames[0][0] == 1
	if subscribes && s.receive != nil {
		s.receive(id, [][]byte{frames[0][1:]})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !subscribes:
		delete(s.topics[p], topic)
	case s.topics[p] == nil:
		s.topics[p] = map[string]bool{topic: true}
	default:
		s.topics[p][topic] = true
	}
}

// Send sends a message to one peer. A peer that is gone is an error.
func (s *Server) Send(to string, frames [][]byte) error {
	s.mu.Lock()
	p := s.peers[to]
	s.mu.Unlock()
	if p == nil {
		return ErrClosed
	}
	return p.Send(frames, true)
}

// Publish sends a message to every subscriber of its topic, which is the first frame. Unless it is urgent, it waits for
// those that are slow.
func (s *Server) Publish(frames [][]byte, urgent bool) {
	topic := string(frames[0])
	s.mu.Lock()
	var to []*Peer
	for p, topics := range s.topics {
		for t := range topics {
			if strings.HasPrefix(topic, t) {
				to = append(to, p)
				break
			}
		}
	}
	s.mu.Unlock()
	for _, p := range to {
		if err := p.Send(frames, urgent); err == ErrStalled {
			s.log.Warn("a client takes nothing, and missed a message", "socket", s.kind)
		}
	}
}

// Close stops to listen and ends all connections, after what is queued was written or limit is over.
func (s *Server) Close(limit time.Duration) {
	s.mu.Lock()
	s.closed = true
	s.listener.Close()
	peers := make([]*Peer, 0, len(s.peers))
	for _, p := range s.peers {
		peers = append(peers, p)
	}
	s.mu.Unlock()
	var wg sync.WaitGroup
	for _, p := range peers {
		wg.Go(func() {
			p.drain(limit)
			p.Close()
		})
	}
	wg.Wait()
}
