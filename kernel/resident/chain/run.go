package chain

import (
	"slices"

	"github.com/attnb/attnb/kernel/resident/store"
	"github.com/attnb/attnb/kernel/wire"
)

// Run runs an op on tensors, and hands over what it made.
func Run(c *store.Client, r wire.Request) (wire.Answer, error) {
	def, ok := ops[r.Op]
	if !ok {
		return wire.Answer{}, wire.Errorf(wire.BadRequest, "unknown op %d", r.Op)
	}
	args, err := def.names(r.Params)
	if err != nil {
		return wire.Answer{}, wire.Errorf(wire.BadInput, "%v: %v", r.Op, err)
	}
	if len(r.IDs) > len(args) || len(r.IDs) < len(args)-def.optional {
		return wire.Answer{}, wire.Errorf(wire.BadRequest, "%v: %d tensors, it takes %d", r.Op, len(r.IDs), len(args))
	}
	in, nodes, inputs, done, err := c.Use(r.Op.String(), r.IDs, args)
	if err != nil {
		return wire.Answer{}, err
	}
	defer done()
	store.ProgressOf(c.Ctx).Step(0, 1)
	name := store.OpName(r.Op, r.Params)
	results, err := runJob(&Job{D: c.Device, op: r.Op}, def, r.Params, in)
	if err != nil {
		return wire.Answer{}, store.Explain(name, err, inputs)
	}
	st := c.Store
	st.Lock()
	defer st.Unlock()
	ts := make([]*store.Tensor, len(results))
	for i, res := range results {
		arr := store.NewArray(res.Buf)
		ts[i] = st.Add(arr, store.NewStep(res.Meta, r.Op, r.Params, slices.Clone(nodes), i, arr))
	}
	return c.Hand(ts...), nil
}

// runJob runs an op and releases what it made on its way, also when it panics.
func runJob(j *Job, def op, p wire.Params, in []store.Operand) ([]store.Operand, error) {
	defer j.Done()
	return def.run(j, p, in)
}
