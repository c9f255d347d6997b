package resident

import (
	"errors"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sort"

	"github.com/attnb/attnb/kernel/tensorfile"
	"github.com/attnb/attnb/kernel/wire"
)

// maxName bounds a tensor's name, in bytes.
const maxName = 256

// answer does what a request asks. It never panics: a fault of ours becomes an answer, and the process stays.
func (c *conn) answer(r wire.Request, data *payload) (a wire.Answer, down []float32) {
	defer func() {
		if p := recover(); p != nil {
			c.s.log.Error("panic", "kind", r.Kind, "op", r.Op.String(), "value", p, "stack", string(debug.Stack()))
			a, down = failure(wire.Errorf(wire.Internal, "internal fault of the device process: %v", p)), nil
		}
	}()
	if !c.hello && r.Kind != wire.KindHello {
		return failure(wire.Errorf(wire.BadRequest, "the first message must be hello")), nil
	}
	if err := c.s.faulted(r); err != nil {
		return failure(err), nil
	}
	if what := taskName(r); what != "" {
		t := c.s.tasks.begin(what)
		c.task.Store(t)
		defer func() {
			c.task.Store(nil)
			c.s.tasks.end(t)
		}()
	}
	a, down, err := c.dispatch(r, data)
	if err != nil {
		return c.s.refusal(err), nil
	}
	if r.Kind == wire.KindName || r.Kind == wire.KindFree {
		c.s.keepRecord()
	}
	return a, down
}

// refusal is the answer to what failed, with what only the server knows.
func (s *server) refusal(err error) wire.Answer {
	var fault *faultAnswer
	if errors.As(err, &fault) {
		s.fail(fault)
	}
	a := failure(err)
	if a.Code == wire.OutOfMemory {
		a.Message += s.largest()
	}
	return a
}

func (c *conn) dispatch(r wire.Request, data *payload) (a wire.Answer, down []float32, err error) {
	switch r.Kind {
	case wire.KindHello:
		a, err = c.sayHello(r)
	case wire.KindUpload:
		a, err = c.upload(r, data)
	case wire.KindLoad:
		a, err = c.load(r)
	case wire.KindGet:
		a, err = c.get(r)
	case wire.KindOnce:
		a = c.once(r)
	case wire.KindName:
		a, err = c.setName(r)
	case wire.KindFree:
		err = c.free(r)
	case wire.KindList:
		a = c.list()
	case wire.KindRun:
		a, err = c.run(r)
	case wire.KindDownload:
		down, err = c.download(r)
	case wire.KindPicture:
		a, err = c.picture(r)
	case wire.KindCheck:
		a, err = c.check(r)
	case wire.KindCompare:
		a, err = c.compare(r)
	case wire.KindExplore:
		a, err = c.explore(r)
	case wire.KindRerun:
		a, err = c.rerun(r)
	case wire.KindRelease:
		c.release(r)
	case wire.KindMap:
		a, err = c.drawMap(r)
	case wire.KindDraw:
		a, err = c.draw(r)
	case wire.KindAsk:
		a, err = c.ask(r)
	case wire.KindTile:
		a, down, err = c.tile(r)
	case wire.KindShow:
		a, err = c.show(r)
	case wire.KindDisplay:
		a, err = c.fetchDisplay(r)
	case wire.KindStatus:
		a = c.status()
	case wire.KindCell:
		c.s.store.mu.Lock()
		c.s.store.cell = r.Number
		c.s.store.unlock()
	case wire.KindInterrupt:
		c.s.d.Interrupt()
	case wire.KindShutdown:
	default:
		err = wire.Errorf(wire.BadRequest, "unknown request %d", r.Kind)
	}
	return a, down, err
}

func (c *conn) sayHello(r wire.Request) (wire.Answer, error) {
	if r.Number != wire.Version {
		return wire.Answer{}, wire.Errorf(wire.BadRequest,
			"the device process speaks version %d, this program version %d: restart the kernel", wire.Version, r.Number)
	}
	c.hello = true
	return wire.Answer{Number: wire.Version, Text: c.s.d.Info().Backend}, nil
}

func (c *conn) upload(r wire.Request, data *payload) (wire.Answer, error) {
	n, err := tensorfile.Elements(r.Shape)
	switch {
	case err != nil:
		return wire.Answer{}, wire.Errorf(wire.BadInput, "FromSlice: %v", err)
	case len(r.Shape) == 0 || len(r.Shape) > tensorfile.MaxRank:
		return wire.Answer{}, wire.Errorf(wire.BadInput, "FromSlice: %d dimensions, must be 1 to %d", len(r.Shape), tensorfile.MaxRank)
	case r.DataLen != 4*n:
		return wire.Answer{}, wire.Errorf(wire.BadInput, "FromSlice: %d values for %s, which has %d", r.DataLen/4, shapeWords(r.Shape, r.Axes), n)
	}
	if err := checkAxes(r.Shape, r.Axes); err != nil {
		return wire.Answer{}, wire.Errorf(wire.BadInput, "FromSlice: %v", err)
	}
	values, err := data.floats()
	if err != nil {
		return wire.Answer{}, err
	}
	return c.leaf("FromSlice", "FromSlice", r.Shape, r.Axes, values)
}

func (c *conn) load(r wire.Request) (wire.Answer, error) {
	shape, values, err := loadFile(r.Path, r.Member)
	if err != nil {
		return wire.Answer{}, err
	}
	source := filepath.Base(r.Path)
	if r.Member != "" {
		source += ": " + r.Member
	}
	if len(shape) == 0 {
		return wire.Answer{}, wire.Errorf(wire.BadInput, "Load: %s: a scalar, not an array", source)
	}
	return c.leaf("Load", source, shape, defaultAxes(len(shape)), values)
}

// leaf puts values on the device as a tensor that came from outside.
func (c *conn) leaf(op, source string, shape []int, axes []string, values []float32) (wire.Answer, error) {
	h, s, d := fold(shape)
	buf, err := c.d.Upload(values, h, s, d)
	if err != nil {
		return wire.Answer{}, explain(op, err, []input{{arg: "data", meta: meta{shape: shape, axes: axes}}})
	}
	st := c.s.store
	st.mu.Lock()
	defer st.unlock()
	arr := &array{buf: buf, refs: 1}
	t := st.add(arr, newLeaf(meta{shape: shape, axes: axes}, source, arr))
	return c.hand(t), nil
}

// hand gives this client a handle of each tensor and describes them. The caller holds the store's lock.
func (c *conn) hand(ts ...*tensor) wire.Answer {
	var a wire.Answer
	for _, t := range ts {
		if !c.held[t] {
			c.held[t] = true
			t.holders++
		}
		a.Tensors = append(a.Tensors, c.s.store.describe(t))
	}
	return a
}

func (c *conn) get(r wire.Request) (wire.Answer, error) {
	st := c.s.store
	st.mu.Lock()
	defer st.unlock()
	t, err := st.getName("Get", r.Name)
	if err != nil {
		return wire.Answer{}, err
	}
	return c.hand(t), nil
}

// once answers the tensor of a name where the declaration that made it is still the same.
func (c *conn) once(r wire.Request) wire.Answer {
	st := c.s.store
	st.mu.Lock()
	defer st.unlock()
	n, ok := st.names[r.Name]
	if !ok || n.hash != r.Hash {
		return wire.Answer{}
	}
	return c.hand(n.t)
}

func (c *conn) setName(r wire.Request) (wire.Answer, error) {
	if r.Name == "" || len(r.Name) > maxName {
		return wire.Answer{}, wire.Errorf(wire.BadInput, "Named: a name has 1 to %d bytes, %.20q has %d", maxName, r.Name, len(r.Name))
	}
	if len(r.IDs) != 1 {
		return wire.Answer{}, wire.Errorf(wire.BadRequest, "Named: %d tensors", len(r.IDs))
	}
	st := c.s.store
	st.mu.Lock()
	defer st.unlock()
	t, err := st.get("Named", r.IDs[0])
	if err != nil {
		return wire.Answer{}, err
	}
	st.setName(r.Name, r.Hash, t)
	return c.hand(t), nil
}

// free drops a name, or ends tensors whoever holds them, their values included where lineage needs them.
func (c *conn) free(r wire.Request) error {
	st := c.s.store
	st.mu.Lock()
	defer st.unlock()
	if len(r.IDs) == 0 {
		t, err := st.getName("Free", r.Name)
		if err == nil {
			st.unname(r.Name, t)
		}
		return err
	}
	for _, id := range r.IDs {
		t, err := st.get("Free", id)
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
		st.freeLeaf(t.node)
		st.end(t)
	}
	return nil
}

// list answers what has a name and what this client holds, oldest first.
func (c *conn) list() wire.Answer {
	st := c.s.store
	st.mu.Lock()
	defer st.unlock()
	var a wire.Answer
	for _, t := range st.tensors {
		if t.name != "" || c.held[t] {
			a.Tensors = append(a.Tensors, st.describe(t))
		}
	}
	sort.Slice(a.Tensors, func(i, j int) bool { return a.Tensors[i].ID < a.Tensors[j].ID })
	return a
}

func (c *conn) status() wire.Answer {
	info, inUse := c.s.d.Info(), c.s.d.InUse()
	st := c.s.store
	st.mu.Lock()
	defer st.unlock()
	status := &wire.Status{Backend: info.Backend, Device: info.Device, InUse: int(inUse), Total: int(info.MemoryTotal),
		Tensors: len(st.tensors), Displays: c.s.displays.count(), PID: os.Getpid()}
	c.s.tasks.describe(status, c.s.d.Progress())
	return wire.Answer{Status: status}
}

// use takes tensors for the time of a job. done gives them back.
func (c *conn) use(op string, ids []int, args []string) (in []operand, nodes []*node, inputs []input, done func(), err error) {
	st := c.s.store
	st.mu.Lock()
	defer st.unlock()
	ts := make([]*tensor, len(ids))
	for i, id := range ids {
		if ts[i], err = st.get(op, id); err != nil {
			return nil, nil, nil, nil, err
		}
	}
	for i, t := range ts {
		t.arr.refs++
		t.node.refs++
		in = append(in, operand{t.arr.buf, t.node.meta})
		nodes = append(nodes, t.node)
		inputs = append(inputs, input{args[i], t.name, t.node.meta})
	}
	arrays := make([]*array, len(ts))
	for i, t := range ts {
		arrays[i] = t.arr
	}
	return in, nodes, inputs, func() {
		st.mu.Lock()
		defer st.unlock()
		for i := range arrays {
			st.dropArray(arrays[i])
			st.dropNode(nodes[i])
		}
	}, nil
}

func (c *conn) run(r wire.Request) (wire.Answer, error) {
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
	in, nodes, inputs, done, err := c.use(r.Op.String(), r.IDs, args)
	if err != nil {
		return wire.Answer{}, err
	}
	defer done()
	taskOf(c.ctx).step(0, 1)
	name := opName(r.Op, r.Params)
	results, err := runJob(&job{d: c.d, op: r.Op}, def, r.Params, in)
	if err != nil {
		return wire.Answer{}, explain(name, err, inputs)
	}
	st := c.s.store
	st.mu.Lock()
	defer st.unlock()
	ts := make([]*tensor, len(results))
	for i, res := range results {
		arr := &array{buf: res.buf, refs: 1}
		ts[i] = st.add(arr, newStep(res.meta, r.Op, r.Params, slices.Clone(nodes), i, arr))
	}
	return c.hand(ts...), nil
}

// runJob runs an op and releases what it made on its way, also when it panics.
func runJob(j *job, def op, p wire.Params, in []operand) ([]result, error) {
	defer j.done()
	return def.run(j, p, in)
}

// opName is what a message calls an op: Index is Head or Batch to the user.
func opName(op wire.Op, p wire.Params) string {
	if op == wire.OpIndex {
		switch p.Axis {
		case "heads":
			return "Head"
		case "batch":
			return "Batch"
		}
	}
	return op.String()
}

func (c *conn) download(r wire.Request) ([]float32, error) {
	if len(r.IDs) != 1 {
		return nil, wire.Errorf(wire.BadRequest, "Download: %d tensors", len(r.IDs))
	}
	in, _, inputs, done, err := c.use("Download", r.IDs, []string{"x"})
	if err != nil {
		return nil, err
	}
	defer done()
	data, err := c.d.Download(in[0].buf)
	if err != nil {
		return nil, explain("Download", err, inputs)
	}
	return data, nil
}
