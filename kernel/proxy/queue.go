package proxy

import (
	"sync"

	"github.com/attnb/attnb/kernel/proxy/jupyter"
	"github.com/attnb/attnb/kernel/proxy/zmtp"
)

// request is a message and the way back to who sent it.
type request struct {
	msg    *jupyter.Message
	from   string
	socket *zmtp.Server
}

// queue holds the requests that wait for the worker.
type queue struct {
	mu      sync.Mutex
	waiting []*request
	some    chan struct{} // holds a token while waiting is not empty
}

func newQueue() *queue { return &queue{some: make(chan struct{}, 1)} }

func (q *queue) add(r *request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, r)
	q.signal()
}

func (q *queue) signal() {
	select {
	case q.some <- struct{}{}:
	default:
	}
}

// next waits for a request. It returns none when event happens, and false when stop is closed.
func (q *queue) next(stop, event <-chan struct{}) (*request, bool) {
	for {
		select {
		case <-stop:
			return nil, false
		case <-event:
			return nil, true
		case <-q.some:
		}
		q.mu.Lock()
		if len(q.waiting) == 0 {
			q.mu.Unlock()
			continue
		}
		r := q.waiting[0]
		q.waiting = q.waiting[1:]
		if len(q.waiting) > 0 {
			q.signal()
		}
		q.mu.Unlock()
		return r, true
	}
}

// takeExecutes removes and returns the execute requests that wait.
func (q *queue) takeExecutes() []*request {
	q.mu.Lock()
	defer q.mu.Unlock()
	var taken, kept []*request
	for _, r := range q.waiting {
		if r.msg.Header.Type == "execute_request" {
			taken = append(taken, r)
		} else {
			kept = append(kept, r)
		}
	}
	q.waiting = kept
	return taken
}
