package store

import (
	"slices"
	"strings"

	"github.com/attnb/attnb/kernel/wire"
)

// Named is what a name refers to, for a file that is to outlive the process.
type Named struct {
	Operand
	Name string
	Hash string // of the declaration that made it, for Once
	Node *Node
}

// UseNamed takes what names refer to, or all that has a name, in the order of names, for the time of a job. done gives it back.
func (c *Client) UseNamed(op string, names []string) (all []Named, done func(), err error) {
	st := c.Store
	st.mu.Lock()
	defer st.Unlock()
	if len(names) == 0 {
		for name := range st.names {
			names = append(names, name)
		}
	}
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	var arrays []*Array
	for _, name := range names {
		t, err := st.getName(op, name)
		if err != nil {
			return nil, nil, err
		}
		arrays = append(arrays, t.arr)
		all = append(all, Named{Operand{t.arr.Buf, t.Node.Meta}, name, st.names[name].hash, t.Node})
	}
	for i := range all {
		arrays[i].refs++
		all[i].Node.refs++
	}
	return all, func() {
		st.mu.Lock()
		defer st.Unlock()
		for i := range all {
			st.DropArray(arrays[i])
			st.DropNode(all[i].Node)
		}
	}, nil
}

// Vacant refuses names that are in use.
func (c *Client) Vacant(op string, names []string) error {
	c.Store.mu.Lock()
	defer c.Store.Unlock()
	return c.Store.vacant(op, names)
}

func (s *Store) vacant(op string, names []string) error {
	var taken []string
	for _, name := range names {
		if _, ok := s.names[name]; ok {
			taken = append(taken, Quote(name))
		}
	}
	switch len(taken) {
	case 0:
		return nil
	case 1:
		return wire.Errorf(wire.BadInput, "%s: there is a tensor %s: let go of it first, or name what to restore", op, taken[0])
	}
	const most = 12
	more := ""
	if len(taken) > most {
		taken, more = taken[:most], " and others"
	}
	return wire.Errorf(wire.BadInput, "%s: there are tensors %s%s: let go of them first, or name what to restore", op, strings.Join(taken, ", "), more)
}

// Restored is a tensor that is to be there again: its values, and what Named says.
type Restored struct {
	Named
	Source string
	Past   []string
}

// Publish makes all of them at once, as leaves, where none of the names is in use. It takes over the buffers.
func (c *Client) Publish(op string, all []Restored) (wire.Answer, error) {
	st := c.Store
	st.mu.Lock()
	defer st.Unlock()
	names := make([]string, len(all))
	for i, r := range all {
		names[i] = r.Name
	}
	if err := st.vacant(op, names); err != nil {
		for _, r := range all {
			st.Bury(r.Buf)
		}
		return wire.Answer{}, err
	}
	ts := make([]*Tensor, len(all))
	for i, r := range all {
		arr := NewArray(r.Buf)
		n := newLeaf(r.Meta, r.Source, arr)
		n.Past = r.Past
		ts[i] = st.Add(arr, n)
		st.setName(r.Name, r.Hash, ts[i])
	}
	return c.Hand(ts...), nil
}

// Release gives back buffers of what is not published.
func Release(all []Restored) {
	for _, r := range all {
		_ = r.Buf.Release() // as in Unlock: there is one reference
	}
}
