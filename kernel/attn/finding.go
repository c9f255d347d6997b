package attn

import "github.com/attnb/attnb/kernel/wire"

// Fault is one way in which tensors depart from what was declared of them.
type Fault struct {
	Kind   string // "pairing", "window", "offset", ...
	Detail string // what was found, and what was declared
	Fix    string // what to change; empty: nothing to say
}

// Diagnosis is what every detective, law and audit gives: a [Finding]. It passes where what was declared explains the numbers.
type Diagnosis struct {
	Pass     bool
	Faults   []Fault // none where it passes
	Sentence string
	Report   string // the text that was shown
	of       string
}

// Passed says whether what was declared explains the numbers.
func (d Diagnosis) Passed() bool { return d.Pass }

// Has says whether there is a fault of this kind: Has("offset").
func (d Diagnosis) Has(kind string) bool {
	for _, f := range d.Faults {
		if f.Kind == kind {
			return true
		}
	}
	return false
}

// String is "FindRoPE: pass: the declared rotation fits", or FAIL and the faults.
func (d Diagnosis) String() string {
	if d.Pass {
		return d.of + ": pass: " + d.Sentence
	}
	return d.of + ": FAIL: " + d.Sentence
}

// FindOption is a setting of a detective, a law or a probe: a [Precision], [Geometry], [RotatedBy], [EmptyRow], or an [Option] such as
// Causal or Window, which declares a rule of attention.
type FindOption interface{ ask(*wire.Request) }

// Precision is what numbers went through on their way, the coarsest step included: what a bf16 model computed is BF16, also in an f32
// tensor. Without one it is f32.
type Precision string

const (
	F64  Precision = "f64"  // 53 bits
	TF32 Precision = "tf32" // 11 bits, of a tensor unit's inputs
	FP16 Precision = "fp16" // 11 bits
	BF16 Precision = "bf16" // 8 bits
)

func (p Precision) ask(r *wire.Request) { set(r, "precision", nil, string(p)) }

// Geometry is the size of what a function is asked with. A number that is 0 is a small one: 4 heads, 2 KV heads (or as many as heads,
// where these are given), 7 rows, 11 keys, 16 dims.
type Geometry struct{ Heads, KVHeads, Rows, Keys, Dim int }

func (g Geometry) ask(r *wire.Request) {
	set(r, "geometry", numbers(g.Heads, g.KVHeads, g.Rows, g.Keys, g.Dim))
}

type rotatedBy struct{ r Rotation }

func (x rotatedBy) ask(r *wire.Request) { rotated(r, x.r) }

// RotatedBy says how keys are rotated before they are cached, or queries and keys of a layout before attention.
func RotatedBy(r Rotation) FindOption { return rotatedBy{r} }

// rotated declares a rotation and leaves the rest of the declaration.
func rotated(r *wire.Request, by Rotation) {
	p := &r.Params
	p.Rotary, p.Base, p.Interleaved, p.Offset, p.Positions = by.p.Rotary, by.p.Base, by.p.Interleaved, by.p.Offset, by.p.Positions
	p.InvFreq, p.Float32Angles, p.Magnitude, p.Scaling = by.p.InvFreq, by.p.Float32Angles, by.p.Magnitude, by.p.Scaling
}

func (o Option) ask(r *wire.Request) {
	if o.set != nil {
		o.set(&r.Params)
	}
	if o.extra != "" {
		give(r, o.extra, o.x)
	}
}

func numbers[N int | float64](of ...N) []float64 {
	out := make([]float64, len(of))
	for i, n := range of {
		out[i] = float64(n)
	}
	return out
}

func set(r *wire.Request, name string, numbers []float64, words ...string) {
	r.Question.Settings = append(r.Question.Settings, wire.Fact{Name: name, Numbers: numbers, Words: words})
}

func about(topic string) wire.Request {
	return wire.Request{Kind: wire.KindAsk, Question: &wire.Question{Topic: topic}}
}

// give adds a tensor in a role; the zero Tensor is none.
func give(r *wire.Request, role string, x Tensor) {
	if x.t.ID != 0 {
		r.IDs = append(r.IDs, x.t.ID)
		r.Question.Roles = append(r.Question.Roles, role)
	}
}

// facts are what a finding is made of.
type facts []wire.Fact

func (fs facts) of(name string) wire.Fact {
	for _, f := range fs {
		if f.Name == name {
			return f
		}
	}
	return wire.Fact{}
}

func (fs facts) number(name string) float64 {
	if n := fs.of(name).Numbers; len(n) > 0 {
		return n[0]
	}
	return 0
}

func (fs facts) word(name string) string {
	if w := fs.of(name).Words; len(w) > 0 {
		return w[0]
	}
	return ""
}

func (fs facts) ints(name string) []int {
	var out []int
	for _, n := range fs.of(name).Numbers {
		out = append(out, int(n))
	}
	return out
}

// find asks, shows the report, and the picture where there is one. Where the question is about a function, call calls it.
func find(of string, r wire.Request, call func(args []Tensor, numbers []int) Tensor, options ...FindOption) (Diagnosis, facts) {
	for _, o := range options {
		if o != nil {
			o.ask(&r)
		}
	}
	a := do(r)
	for a.Call != nil {
		out := call(all(a), a.Call.Numbers)
		a = do(wire.Request{Kind: wire.KindAsk, Number: a.Call.ID, IDs: []int{out.t.ID}})
	}
	if a.Finding == nil {
		stop(of + ": the device process gave no finding")
	}
	publish(a.Text, a.DisplayID)
	d := Diagnosis{Pass: a.Finding.Pass, Sentence: a.Finding.Sentence, Report: a.Text, of: of}
	for _, f := range a.Finding.Faults {
		d.Faults = append(d.Faults, Fault(f))
	}
	return d, a.Finding.Facts
}
