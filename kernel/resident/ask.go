package resident

import (
	"fmt"

	"gonum.org/v1/gonum/mat"

	"github.com/attnb/attnb/kernel/resident/trust"
	"github.com/attnb/attnb/kernel/wire"
	"github.com/attnb/attnb/reference"
)

// maxAsked bounds the cells of the tensors that one question is about.
const maxAsked = 1 << 25

// questions are the topics that need more than the tensors: what made them.
var questions = map[string]struct {
	name   string
	answer func(c *conn, r wire.Request) (wire.Answer, error)
}{
	"appends": {"CheckWrites", (*conn).checkAppends},
	"audit":   {"Audit", (*conn).audit},
	"ladder":  {"Ladder", (*conn).ladder},
}

// topicName is what a cell calls a question.
func topicName(topic string) string {
	if q, ok := questions[topic]; ok {
		return q.name
	}
	return trust.Name(topic)
}

// ask answers a question about tensors, or begins to, where it takes a function of the client's.
func (c *conn) ask(r wire.Request) (wire.Answer, error) {
	if r.Question == nil {
		return c.askOn(r)
	}
	topic := r.Question.Topic
	name := topicName(topic)
	if name == "" {
		return wire.Answer{}, wire.Errorf(wire.BadRequest, "unknown question %.40q", topic)
	}
	if len(r.Question.Roles) != len(r.IDs) {
		return wire.Answer{}, wire.Errorf(wire.BadRequest, "%s: %d tensors and %d roles", name, len(r.IDs), len(r.Question.Roles))
	}
	if q, ok := questions[topic]; ok {
		return q.answer(c, r)
	}
	if err := trust.Roles(topic, r.Question.Roles); err != nil {
		return wire.Answer{}, wire.Errorf(wire.BadInput, "%s: %v", name, err)
	}
	in, nodes, inputs, done, err := c.use(name, r.IDs, r.Question.Roles)
	if err != nil {
		return wire.Answer{}, err
	}
	defer done()
	ask := trust.Case{Topic: topic, Params: r.Params, Settings: r.Question.Settings}
	if r.Params.Rotary != 0 {
		rope := referenceRoPE(r.Params)
		ask.RoPE = &rope
	}
	cells := 0
	for i, x := range in {
		if cells += cellsOf(nodes[i]); cells > maxAsked {
			return wire.Answer{}, wire.Errorf(wire.Refused, "%s: %d cells and more are too many to look at: take a head or some rows%s", name, maxAsked, about(nil, inputs))
		}
		t, err := c.tensorFor(r.Question.Roles[i], x)
		if err != nil {
			return wire.Answer{}, explain(name, err, inputs)
		}
		t.Name = inputs[i].name
		ask.Tensors = append(ask.Tensors, t)
	}
	return c.begin(ask, inputs)
}

// tensorFor downloads a tensor for its role: by head, but flat as it lies.
func (c *conn) tensorFor(role string, x operand) (trust.Tensor, error) {
	t := trust.Tensor{Role: role, Shape: x.shape, Axes: x.axes}
	if role == "flat" {
		data, err := c.d.Download(x.buf)
		t.Heads = headsFrom(data, []int{1, 1, max(1, len(data))})
		return t, err
	}
	if len(x.shape) > 3 {
		return t, wire.Errorf(wire.BadInput, "%s: %d dimensions are too many: pick one with Batch(i)", role, len(x.shape))
	}
	data, err := fetch(c.d, x)
	if err != nil {
		return t, err
	}
	t.Heads = byHead(data, x.meta)
	return t, nil
}

// byHead is downloaded data, heads first: [heads, dim] is one row a head.
func byHead(data []float32, m meta) reference.Heads {
	a := arrange(m)
	if len(m.shape) == 2 && m.swapped() {
		return headsFrom(data, []int{m.shape[0], 1, m.shape[1]})
	}
	return headsFrom(data, []int{a.h, a.s, a.d})
}

// finish makes an answer of an outcome.
func (c *conn) finish(o trust.Outcome) (wire.Answer, error) {
	a := wire.Answer{Finding: &o.Finding, Text: o.Report}
	if o.Picture == nil {
		return a, nil
	}
	d, err := bundle(o.Picture, "")
	if err != nil {
		return wire.Answer{}, err
	}
	a.DisplayID, err = c.s.displays.put(d)
	return a, err
}

// packedHeads are values in the order of an upload.
func packedHeads(x reference.Heads) (data []float32, shape []int) {
	rows, dim := x[0].Dims()
	data = make([]float32, 0, len(x)*rows*dim)
	for _, m := range x {
		for i := range rows {
			for _, v := range mat.Row(nil, i, m) {
				data = append(data, float32(v))
			}
		}
	}
	return data, []int{len(x), rows, dim}
}

// refusedAs is a refusal of package trust, which knows no inputs.
func refusedAs(name string, err error, inputs []input) error {
	return wire.Errorf(wire.BadInput, "%s", fmt.Sprintf("%s: %v%s", name, err, about(nil, inputs)))
}
