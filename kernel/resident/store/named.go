package store

import (
	"slices"
	"strings"

	"github.com/attnb/attnb/kernel/wire"
)

// Named is what a name refers to, for a file that is to outlive the process.
type Named struct {
	Operand
	ID   int // of the tensor
	Name string
	Hash string // of the declaration that made it, for Once
	Node *Node
}

// UseNamed takes what names refer to, or all that has a name, in the order of names, for the time of a job. done gives it back. hand: the client
// gets handles too.
func (c *Client) UseNamed(op string, names []string, hand bool) (all []Named, done func(), err error) {
	st := c.Store
	st.mu.Lock()
	defer st.Unlock()
	if len(names) == 0 {
		for name := range st.names {
			names = append(names, name)
		}
	}
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	var ts []*Tensor
	for _, name := range names {
		t, err := st.getName(op, name)
		if err != nil {
			return nil, nil, err
		}
		ts = append(ts, t)
		all = append(all, Named{Operand{t.arr.Buf, t.Node.Meta}, t.id, name, st.names[name].hash, t.Node})
	}
	if hand {
		c.Hand(ts...)
	}
	arrays := make([]*Array, len(ts))
	for i, t := range ts {
		arrays[i] = t.arr
		t.arr.refs++
		t.Node.refs++
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

// Publish makes all of them at once, as leaves, where none of the names is in use. It takes over the buffers; of one without a buffer the values
// are those of the tensor ID.
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
			if r.Buf != nil {
				st.Bury(r.Buf)
			}
		}
		return wire.Answer{}, err
	}
	arrays := make([]*Array, len(all))
	for i, r := range all {
		if r.Buf != nil {
			continue
		}
		t, err := st.Get(op, r.ID)
		if err != nil {
			return wire.Answer{}, err
		}
		arrays[i] = t.arr
	}
	ts := make([]*Tensor, len(all))
	for i, r := range all {
		arr := arrays[i]
		if arr == nil {
			arr = NewArray(r.Buf)
		} else {
			arr.refs++
		}
		n := newLeaf(r.Meta, Origin{Source: r.Source}, arr)
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
