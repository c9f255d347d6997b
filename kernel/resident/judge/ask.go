package judge

import (
	"fmt"

	"gonum.org/v1/gonum/mat"

	"github.com/attnb/attnb/kernel/resident/chain"
	"github.com/attnb/attnb/kernel/resident/show"
	"github.com/attnb/attnb/kernel/resident/store"
	"github.com/attnb/attnb/kernel/resident/trust"
	"github.com/attnb/attnb/kernel/wire"
	"github.com/attnb/attnb/reference"
)

// maxAsked bounds the cells of the tensors that one question is about.
const maxAsked = 1 << 25

// questions are the topics that need more than the tensors: what made them.
var questions = map[string]struct {
	name   string
	answer func(j *Judge, r wire.Request) (wire.Answer, error)
}{
	"appends": {"CheckWrites", (*Judge).checkAppends},
	"audit":   {"Audit", (*Judge).audit},
	"ladder":  {"Ladder", (*Judge).ladder},
}

// Name is what a cell calls a question.
func Name(topic string) string {
	if q, ok := questions[topic]; ok {
		return q.name
	}
	return trust.Name(topic)
}

// Ask answers a question about tensors, or begins to, where it takes a function of the client's.
func (j *Judge) Ask(r wire.Request) (wire.Answer, error) {
	if r.Question == nil {
		return j.askOn(r)
	}
	topic := r.Question.Topic
	name := Name(topic)
	if name == "" {
		return wire.Answer{}, wire.Errorf(wire.BadRequest, "unknown question %.40q", topic)
	}
	if len(r.Question.Roles) != len(r.IDs) {
		return wire.Answer{}, wire.Errorf(wire.BadRequest, "%s: %d tensors and %d roles", name, len(r.IDs), len(r.Question.Roles))
	}
	if q, ok := questions[topic]; ok {
		return q.answer(j, r)
	}
	if err := trust.Roles(topic, r.Question.Roles); err != nil {
		return wire.Answer{}, wire.Errorf(wire.BadInput, "%s: %v", name, err)
	}
	in, nodes, inputs, done, err := j.Use(name, r.IDs, r.Question.Roles)
	if err != nil {
		return wire.Answer{}, err
	}
	defer done()
	ask := trust.Case{Topic: topic, Params: r.Params, Settings: r.Question.Settings}
	if r.Params.Rotary != 0 {
		rope := chain.ReferenceRoPE(r.Params)
		ask.RoPE = &rope
	}
	cells := 0
	for i, x := range in {
		if cells += chain.CellsOf(nodes[i]); cells > maxAsked {
			return wire.Answer{}, wire.Errorf(wire.Refused, "%s: %d cells and more are too many to look at: take a head or some rows%s", name, maxAsked, store.About(nil, inputs))
		}
		t, err := j.tensorFor(r.Question.Roles[i], x)
		if err != nil {
			return wire.Answer{}, store.Explain(name, err, inputs)
		}
		t.Name = inputs[i].Name
		ask.Tensors = append(ask.Tensors, t)
	}
	return j.begin(ask, inputs)
}

// tensorFor downloads a tensor for its role: by head, but flat as it lies.
func (j *Judge) tensorFor(role string, x store.Operand) (trust.Tensor, error) {
	t := trust.Tensor{Role: role, Shape: x.Shape, Axes: x.Axes}
	if role == "flat" {
		data, err := j.Device.Download(x.Buf)
		t.Heads = chain.HeadsFrom(data, []int{1, 1, max(1, len(data))})
		return t, err
	}
	if len(x.Shape) > 3 {
		return t, wire.Errorf(wire.BadInput, "%s: %d dimensions are too many: pick one with Batch(i)", role, len(x.Shape))
	}
	data, err := store.Fetch(j.Device, x)
	if err != nil {
		return t, err
	}
	t.Heads = byHead(data, x.Meta)
	return t, nil
}

// byHead is downloaded data, heads first: [heads, dim] is one row a head.
func byHead(data []float32, m store.Meta) reference.Heads {
	a := store.ViewOf(m)
	if len(m.Shape) == 2 && m.Swapped() {
		return chain.HeadsFrom(data, []int{m.Shape[0], 1, m.Shape[1]})
	}
	return chain.HeadsFrom(data, []int{a.H, a.S, a.D})
}

// finish makes an answer of an outcome.
func (j *Judge) finish(o trust.Outcome) (wire.Answer, error) {
	a := wire.Answer{Finding: &o.Finding, Text: o.Report}
	if o.Picture == nil {
		return a, nil
	}
	d, err := show.Bundle(o.Picture, "")
	if err != nil {
		return wire.Answer{}, err
	}
	a.DisplayID, err = j.gallery.Put(d)
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
func refusedAs(name string, err error, inputs []store.Input) error {
	return wire.Errorf(wire.BadInput, "%s", fmt.Sprintf("%s: %v%s", name, err, store.About(nil, inputs)))
}
