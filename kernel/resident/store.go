package resident

import (
	"fmt"
	"sync"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/kernel/wire"
)

// array is a buffer of the device with a count of our own: the buffer's would wait for the op that runs.
type array struct {
	buf  *cudaops.Buffer
	refs int
}

// tensor is what a handle of a client refers to. It holds one reference to its array and one to its node.
type tensor struct {
	id      int
	node    *node
	arr     *array
	holders int    // names and connections
	name    string // the newest of its names, for messages; empty where it never had one
	cell    int    // the cell that made it
}

// named is what a name refers to.
type named struct {
	t    *tensor
	hash string // of the declaration that made it, for Once
}

// store holds all tensors. Its lock is never held while the device works.
type store struct {
	mu      sync.Mutex
	tensors map[int]*tensor
	names   map[string]named
	lastID  int
	cell    int
	lost    map[string]string // why a name of an earlier process is gone
	changes int               // counts the names that came and went
	freed   map[int]string    // what an ID was, of tensors that Free ended while a client had a handle
	dead    []*cudaops.Buffer // to be released once the lock is free
}

func newStore() *store {
	return &store{tensors: map[int]*tensor{}, names: map[string]named{}, lost: map[string]string{}, freed: map[int]string{}}
}

// unlock releases the lock and then the buffers that nothing refers to any more.
func (s *store) unlock() {
	dead := s.dead
	s.dead = nil
	s.mu.Unlock()
	for _, b := range dead {
		// The only failure is a release too many, which the counts here rule out.
		_ = b.Release()
	}
}

// The methods below are called with the lock held.

// add makes a tensor of an array and its node, whose references it takes over.
func (s *store) add(a *array, n *node) *tensor {
	s.lastID++
	t := &tensor{id: s.lastID, node: n, arr: a, cell: s.cell}
	n.live = a
	s.tensors[t.id] = t
	return t
}

func (s *store) dropArray(a *array) {
	a.refs--
	if a.refs == 0 {
		s.dead = append(s.dead, a.buf)
	}
}

// unhold takes away one holder; the tensor ends with the last.
func (s *store) unhold(t *tensor) {
	t.holders--
	if t.holders == 0 {
		s.end(t)
	}
}

// end removes the tensor, whoever holds it.
func (s *store) end(t *tensor) {
	delete(s.tensors, t.id)
	t.node.live = nil
	s.dropArray(t.arr)
	s.dropNode(t.node)
}

// setName gives t a name. What had it before loses it.
func (s *store) setName(name, hash string, t *tensor) {
	old, ok := s.names[name]
	t.holders++ // first, so that a tensor may be named again as what it is
	if ok {
		s.unname(name, old.t)
	}
	s.names[name] = named{t, hash}
	if !ok {
		s.changes++
		delete(s.lost, name)
	}
	t.name, t.node.label = name, name
}

// unname takes a name away. Where the tensor has another name it is called by that from now on.
func (s *store) unname(name string, t *tensor) {
	delete(s.names, name)
	s.changes++
	if t.name == name {
		t.name = ""
		for other, n := range s.names {
			if n.t == t && other > t.name {
				t.name = other
			}
		}
	}
	s.unhold(t)
}

// get finds a tensor by its ID.
func (s *store) get(op string, id int) (*tensor, error) {
	if t := s.tensors[id]; t != nil {
		return t, nil
	}
	if id >= 1 && id <= s.lastID {
		what := s.freed[id]
		if what == "" {
			what = "the tensor"
		}
		return nil, wire.Errorf(wire.Freed, "%s: %s was freed", op, what)
	}
	return nil, wire.Errorf(wire.NotFound, "%s: not a tensor: it was declared but never made", op)
}

// maxFreed bounds the memory of what was freed.
const maxFreed = 4096

// remember keeps what a freed tensor was, for messages.
func (s *store) remember(t *tensor) {
	if len(s.freed) >= maxFreed {
		clear(s.freed)
	}
	name := "the tensor"
	if t.name != "" {
		name = quote(t.name)
	}
	s.freed[t.id] = name + " " + shapeWords(t.node.shape, t.node.axes)
}

// getName finds a tensor by its name.
func (s *store) getName(op, name string) (*tensor, error) {
	if n, ok := s.names[name]; ok {
		return n.t, nil
	}
	if why := s.lost[name]; why != "" {
		return nil, wire.Errorf(wire.Freed, "%s: tensor %q was lost %s", op, name, why)
	}
	known := make([]string, 0, len(s.names))
	for k := range s.names {
		known = append(known, k)
	}
	msg := fmt.Sprintf("%s: no tensor is named %q", op, name)
	if near := nearest(name, known); near != "" {
		msg += fmt.Sprintf(": did you mean %q?", near)
	}
	return nil, &wire.Error{Code: wire.NotFound, Message: msg}
}

// describe is what a client is told of a tensor.
func (s *store) describe(t *tensor) wire.Tensor {
	return wire.Tensor{ID: t.id, Name: t.name, Shape: t.node.shape, Axes: t.node.axes, Made: t.node.made(), Cell: t.cell, Empty: t.node.empty}
}
