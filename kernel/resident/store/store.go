package store

import (
	"fmt"
	"sync"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/kernel/wire"
)

// Array is a buffer of the device with a count of our own: the buffer's would wait for the op that runs.
type Array struct {
	Buf  *cudaops.Buffer // valid while a reference is held
	refs int
}

// Tensor is what a handle of a client refers to. It holds one reference to its array and one to its node.
type Tensor struct {
	id      int
	Node    *Node // how it was made
	arr     *Array
	holders int    // names and connections
	Name    string // the newest of its names, for messages; empty where it never had one
	cell    int    // the cell that made it
}

// named is what a name refers to.
type named struct {
	t    *Tensor
	hash string // of the declaration that made it, for Once
}

// Store holds all tensors. Its lock is never held while the device works.
type Store struct {
	mu      sync.Mutex
	tensors map[int]*Tensor
	names   map[string]named
	lastID  int
	cell    int
	lost    map[string]string // why a name of an earlier process is gone
	changes int               // counts the names that came and went
	freed   map[int]string    // what an ID was, of tensors that Free ended while a client had a handle
	dead    []*cudaops.Buffer // to be released once the lock is free
}

// New is empty.
func New() *Store {
	return &Store{tensors: map[int]*Tensor{}, names: map[string]named{}, lost: map[string]string{}, freed: map[int]string{}}
}

// Lock takes the lock. It is never held while the device works.
func (s *Store) Lock() { s.mu.Lock() }

// Unlock releases the lock and then the buffers that nothing refers to any more.
func (s *Store) Unlock() {
	dead := s.dead
	s.dead = nil
	s.mu.Unlock()
	for _, b := range dead {
		// The only failure is a release too many, which the counts here rule out.
		_ = b.Release()
	}
}

// Add makes a tensor of an array and its node, whose references it takes over. The lock is held.
func (s *Store) Add(a *Array, n *Node) *Tensor {
	s.lastID++
	t := &Tensor{id: s.lastID, Node: n, arr: a, cell: s.cell}
	n.live = a
	s.tensors[t.id] = t
	return t
}

// NewArray has one reference, the caller's.
func NewArray(b *cudaops.Buffer) *Array { return &Array{Buf: b, refs: 1} }

// Hold takes a reference. The lock is held.
func (a *Array) Hold() { a.refs++ }

// Bury leaves buffers to be released once the lock is free. The lock is held.
func (s *Store) Bury(bs ...*cudaops.Buffer) { s.dead = append(s.dead, bs...) }

// DropArray takes away a reference; the buffer is released with the last. The lock is held.
func (s *Store) DropArray(a *Array) {
	a.refs--
	if a.refs == 0 {
		s.dead = append(s.dead, a.Buf)
	}
}

// unhold takes away one holder; the tensor ends with the last. The lock is held.
func (s *Store) unhold(t *Tensor) {
	t.holders--
	if t.holders == 0 {
		s.end(t)
	}
}

// end removes the tensor, whoever holds it. The lock is held.
func (s *Store) end(t *Tensor) {
	delete(s.tensors, t.id)
	t.Node.live = nil
	s.DropArray(t.arr)
	s.DropNode(t.Node)
}

// setName gives t a name. What had it before loses it. The lock is held.
func (s *Store) setName(name, hash string, t *Tensor) {
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
	t.Name, t.Node.Label = name, name
}

// unname takes a name away. Where the tensor has another name it is called by that from now on. The lock is held.
func (s *Store) unname(name string, t *Tensor) {
	delete(s.names, name)
	s.changes++
	if t.Name == name {
		t.Name = ""
		for other, n := range s.names {
			if n.t == t && other > t.Name {
				t.Name = other
			}
		}
	}
	s.unhold(t)
}

// Get finds a tensor by its ID. The lock is held.
func (s *Store) Get(op string, id int) (*Tensor, error) {
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

// remember keeps what a freed tensor was, for messages. The lock is held.
func (s *Store) remember(t *Tensor) {
	if len(s.freed) >= maxFreed {
		clear(s.freed)
	}
	name := "the tensor"
	if t.Name != "" {
		name = Quote(t.Name)
	}
	s.freed[t.id] = name + " " + ShapeWords(t.Node.Shape, t.Node.Axes)
}

// getName finds a tensor by its name. The lock is held.
func (s *Store) getName(op, name string) (*Tensor, error) {
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
	if near := Nearest(name, known); near != "" {
		msg += fmt.Sprintf(": did you mean %q?", near)
	} else if op == "Get" && len(known) == 0 {
		msg += ": none has a name now; run the cell that gives it"
	}
	return nil, &wire.Error{Code: wire.NotFound, Message: msg}
}

// describe is what a client is told of a tensor. The lock is held.
func (s *Store) describe(t *Tensor) wire.Tensor {
	return wire.Tensor{ID: t.id, Name: t.Name, Shape: t.Node.Shape, Axes: t.Node.Axes, Made: t.Node.Made(), Cell: t.cell, Empty: t.Node.Empty}
}
