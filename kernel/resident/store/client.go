package store

import (
	"context"
	"fmt"
	"sort"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/kernel/wire"
)

// Client is one connection's hold on the store: the device under the connection's context, and the tensors that it has handles of.
type Client struct {
	Store  *Store          // shared by all clients
	Device *cudaops.Device // under Ctx
	Ctx    context.Context // ends with the connection
	held   map[*Tensor]bool
}

// NewClient is a client that holds nothing yet.
func NewClient(ctx context.Context, d *cudaops.Device, s *Store) *Client {
	return &Client{Store: s, Device: d.Under(ctx), Ctx: ctx, held: map[*Tensor]bool{}}
}

// maxName bounds a tensor's name, in bytes.
const maxName = 256

// CheckName refuses what cannot be a tensor's name.
func CheckName(name string) error {
	if name == "" || len(name) > maxName {
		return fmt.Errorf("a name has 1 to %d bytes, %.20q has %d", maxName, name, len(name))
	}
	return nil
}

// Use takes tensors for the time of a job: what the device works on, their lineage, and what errors say of them. args are what the job
// calls them. done gives them back.
func (c *Client) Use(op string, ids []int, args []string) (in []Operand, nodes []*Node, inputs []Input, done func(), err error) {
	st := c.Store
	st.mu.Lock()
	defer st.Unlock()
	ts := make([]*Tensor, len(ids))
	for i, id := range ids {
		if ts[i], err = st.Get(op, id); err != nil {
			return nil, nil, nil, nil, err
		}
	}
	for i, t := range ts {
		t.arr.refs++
		t.Node.refs++
		in = append(in, Operand{t.arr.Buf, t.Node.Meta})
		nodes = append(nodes, t.Node)
		inputs = append(inputs, Input{args[i], t.Name, t.Node.Meta})
	}
	arrays := make([]*Array, len(ts))
	for i, t := range ts {
		arrays[i] = t.arr
	}
	return in, nodes, inputs, func() {
		st.mu.Lock()
		defer st.Unlock()
		for i := range arrays {
			st.DropArray(arrays[i])
			st.DropNode(nodes[i])
		}
	}, nil
}

// FromSlice gives the values of a slice, in parts, to [Client.Leaf].
func FromSlice(x []float32) func(part []float32) error {
	return func(part []float32) error {
		x = x[copy(part, x):]
		return nil
	}
}

// Leaf puts the values that fill gives, part by part, on the device as a tensor that came from outside.
func (c *Client) Leaf(op string, from Origin, shape []int, axes []string, fill func(part []float32) error) (wire.Answer, error) {
	h, s, d := Fold(shape)
	buf, err := c.Device.UploadFrom(h, s, d, fill)
	if err != nil {
		return wire.Answer{}, Explain(op, err, []Input{{Arg: "data", Meta: Meta{Shape: shape, Axes: axes}}})
	}
	st := c.Store
	st.mu.Lock()
	defer st.Unlock()
	arr := NewArray(buf)
	t := st.Add(arr, newLeaf(Meta{Shape: shape, Axes: axes}, from, arr))
	return c.Hand(t), nil
}

// Hand gives this client a handle of each tensor and describes them. The caller holds the store's lock.
func (c *Client) Hand(ts ...*Tensor) wire.Answer {
	var a wire.Answer
	for _, t := range ts {
		if !c.held[t] {
			c.held[t] = true
			t.holders++
		}
		a.Tensors = append(a.Tensors, c.Store.describe(t))
	}
	return a
}

// Get answers the tensor of a name.
func (c *Client) Get(r wire.Request) (wire.Answer, error) {
	st := c.Store
	st.mu.Lock()
	defer st.Unlock()
	t, err := st.getName("Get", r.Name)
	if err != nil {
		return wire.Answer{}, err
	}
	return c.Hand(t), nil
}

// Once answers the tensor of a name where the declaration that made it is still the same.
func (c *Client) Once(r wire.Request) wire.Answer {
	st := c.Store
	st.mu.Lock()
	defer st.Unlock()
	n, ok := st.names[r.Name]
	if !ok || n.hash != r.Hash {
		return wire.Answer{}
	}
	return c.Hand(n.t)
}

// SetName gives a tensor a name.
func (c *Client) SetName(r wire.Request) (wire.Answer, error) {
	if err := CheckName(r.Name); err != nil {
		return wire.Answer{}, wire.Errorf(wire.BadInput, "Named: %v", err)
	}
	if len(r.IDs) != 1 {
		return wire.Answer{}, wire.Errorf(wire.BadRequest, "Named: %d tensors", len(r.IDs))
	}
	st := c.Store
	st.mu.Lock()
	defer st.Unlock()
	t, err := st.Get("Named", r.IDs[0])
	if err != nil {
		return wire.Answer{}, err
	}
	st.setName(r.Name, r.Hash, t)
	return c.Hand(t), nil
}

// Free drops a name, or ends tensors whoever holds them, their values included where lineage needs them.
func (c *Client) Free(r wire.Request) error {
	st := c.Store
	st.mu.Lock()
	defer st.Unlock()
	if len(r.IDs) == 0 {
		t, err := st.getName("Free", r.Name)
		if err == nil {
			st.unname(r.Name, t)
		}
		return err
	}
	for _, id := range r.IDs {
		t, err := st.Get("Free", id)
		if err != nil {
			return err
		}
		for name, n := range st.names {
			if n.t == t {
				delete(st.names, name)
				st.changes++
			}
		}
		st.remember(t)
		st.freeLeaf(t.Node)
		st.end(t)
	}
	return nil
}

// List answers what has a name and what this client holds, oldest first.
func (c *Client) List() wire.Answer {
	st := c.Store
	st.mu.Lock()
	defer st.Unlock()
	var a wire.Answer
	for _, t := range st.tensors {
		if t.Name != "" || c.held[t] {
			a.Tensors = append(a.Tensors, st.describe(t))
		}
	}
	sort.Slice(a.Tensors, func(i, j int) bool { return a.Tensors[i].ID < a.Tensors[j].ID })
	return a
}

// Download gives the values of a tensor to take, part by part, in the order in which they lie; all is how many there are.
func (c *Client) Download(r wire.Request, take func(all int, part []float32) error) error {
	if len(r.IDs) != 1 {
		return wire.Errorf(wire.BadRequest, "Download: %d tensors", len(r.IDs))
	}
	in, _, inputs, done, err := c.Use("Download", r.IDs, []string{"x"})
	if err != nil {
		return err
	}
	defer done()
	h, s, d := Fold(in[0].Shape)
	err = c.Device.DownloadTo(in[0].Buf, func(part []float32) error { return take(h*s*d, part) })
	if err != nil {
		return Explain("Download", err, inputs)
	}
	return nil
}

// Close lets go of what only this client held.
func (c *Client) Close() {
	c.Store.mu.Lock()
	defer c.Store.Unlock()
	for t := range c.held {
		if c.Store.tensors[t.id] == t {
			c.Store.unhold(t)
		}
	}
}

// LetGo gives back handles of tensors, of those that are still there.
func (c *Client) LetGo(ids []int) {
	c.Store.mu.Lock()
	defer c.Store.Unlock()
	for _, id := range ids {
		if t := c.Store.tensors[id]; t != nil && c.held[t] {
			delete(c.held, t)
			c.Store.unhold(t)
		}
	}
}
