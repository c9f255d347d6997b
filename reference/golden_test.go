package reference_test

import (
	"encoding/json"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"codeberg.org/sbinet/npyio/npz"
	"github.com/attnb/attnb/reference"
	"gonum.org/v1/gonum/mat"
)

// The tensors of a known framework, in float64; their README says how they were made. The framework computes angles, cosines,
// sines and (Llama, NeoX) the softmax in f32 inside, hence tolerances wider than float64's.
const (
	exact       = 0
	float64Only = 1e-14
	nearAngles  = 2e-6 // f32 angles below position 12 against float64 ones
	farAngles   = 5e-4 // the same at 5000: an f32 angle is off by up to 5000 * 2^-24 = 3e-4
	sameAngles  = 6e-7 // f32 angles on both sides, near and far: a step of an f32 cosine times elements up to 5
	f32Softmax  = 1e-6
)

type golden struct {
	t     *testing.T
	file  *npz.Reader
	shape geometry
}

type geometry struct {
	Heads           int
	KVHeads         int `json:"kv_heads"`
	Dim             int `json:"head_dim"`
	Seq             int
	Decode          int
	Rotary          int `json:"rotary_ndims"`
	Base            float64
	Scale           float64
	Far             int
	AttentionFactor float64 `json:"attention_factor"`
}

func open(t *testing.T, name string) golden {
	t.Helper()
	file, err := npz.Open(filepath.Join("..", "cudaops", "optest", "testdata", "golden", name+".npz"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	var meta []uint8
	g := golden{t: t, file: file}
	if err := file.Read("meta.npy", &meta); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(meta, &g.shape); err != nil {
		t.Fatal(err)
	}
	return g
}

// heads is an array as a list of matrices: one of two dimensions is a list of one.
func (g golden) heads(name string) reference.Heads {
	g.t.Helper()
	header := g.file.Header(name + ".npy")
	var data []float64
	if header == nil {
		g.t.Fatalf("no array %s", name)
	}
	if err := g.file.Read(name+".npy", &data); err != nil {
		g.t.Fatal(err)
	}
	dims := header.Descr.Shape
	if len(dims) == 2 {
		dims = []int{1, dims[0], dims[1]}
	}
	if len(dims) != 3 || header.Descr.Fortran {
		g.t.Fatalf("%s has shape %v", name, dims)
	}
	out := make(reference.Heads, dims[0])
	for h := range out {
		out[h] = mat.NewDense(dims[1], dims[2], slices.Clone(data[:dims[1]*dims[2]]))
		data = data[dims[1]*dims[2]:]
	}
	return out
}

func (g golden) matrix(name string) *mat.Dense {
	g.t.Helper()
	return g.heads(name)[0]
}

// separate is a projection that is not fused, as heads.
func (g golden) separate(name string, heads int) reference.Heads {
	g.t.Helper()
	return must(g.t)(reference.Unmerge(g.matrix(name), heads))
}

func TestGoldenGPT2(t *testing.T) {
	g := open(t, "gpt2_a")
	s := g.shape
	q, k, v, err := reference.Split(g.matrix("qkv"), reference.GPT2, s.Heads, s.Heads, s.Dim)
	if err != nil {
		t.Fatal(err)
	}
	agree(t, "q", q, g.heads("q"), exact)
	agree(t, "k", k, g.heads("k"), exact)
	agree(t, "v", v, g.heads("v"), exact)
	g.prefill(q, k, v, float64Only)

	qd, kd, vd, err := reference.Split(g.matrix("qkv_decode"), reference.GPT2, s.Heads, s.Heads, s.Dim)
	if err != nil {
		t.Fatal(err)
	}
	g.decode(qd, k, kd, v, vd, exact, float64Only)
}

func TestGoldenNeoX(t *testing.T) {
	g := open(t, "neox_a")
	s := g.shape
	q, k, v, err := reference.Split(g.matrix("qkv"), reference.NeoX, s.Heads, s.Heads, s.Dim)
	if err != nil {
		t.Fatal(err)
	}
	agree(t, "q before RoPE", q, g.heads("q_pre"), exact)
	agree(t, "k before RoPE", k, g.heads("k_pre"), exact)
	agree(t, "v", v, g.heads("v"), exact)
	rope := reference.RoPE{Rotary: s.Rotary, Base: s.Base}
	g.rotated(q, k, v, rope)

	qd, kd, vd, err := reference.Split(g.matrix("qkv_decode"), reference.NeoX, s.Heads, s.Heads, s.Dim)
	if err != nil {
		t.Fatal(err)
	}
	k = must(t)(reference.ApplyRoPE(k, rope))
	rope.Offset = s.Seq
	qd, kd = must(t)(reference.ApplyRoPE(qd, rope)), must(t)(reference.ApplyRoPE(kd, rope))
	agree(t, "decoded q", qd, g.heads("q_decode"), nearAngles)
	g.decode(qd, k, kd, v, vd, nearAngles, nearAngles)
}

func TestGoldenLlama(t *testing.T) {
	for _, name := range []string{"llama_a", "llama_linear_a", "llama_llama3_a", "llama_yarn_a", "llama_dynamic_a"} {
		t.Run(name, func(t *testing.T) {
			g := open(t, name)
			s := g.shape
			q, k, v := g.separate("q_proj", s.Heads), g.separate("k_proj", s.KVHeads), g.separate("v_proj", s.KVHeads)
			agree(t, "v", v, g.heads("v"), exact)
			rope := reference.RoPE{Rotary: s.Rotary, InvFreq: g.numbers("inv_freq"), Magnitude: s.AttentionFactor}
			g.rotated(q, k, v, rope)
			if s.Decode == 0 {
				return
			}
			k = must(t)(reference.ApplyRoPE(k, rope))
			rope.Offset = s.Seq
			qd := must(t)(reference.ApplyRoPE(g.separate("q_proj_decode", s.Heads), rope))
			kd := must(t)(reference.ApplyRoPE(g.separate("k_proj_decode", s.KVHeads), rope))
			g.decode(qd, k, kd, v, g.separate("v_proj_decode", s.KVHeads), nearAngles, nearAngles)
		})
	}
}

func TestGoldenGPTJ(t *testing.T) {
	g := open(t, "gptj_a")
	s := g.shape
	q, k, v := g.separate("q_proj", s.Heads), g.separate("k_proj", s.Heads), g.separate("v_proj", s.Heads)
	agree(t, "v", v, g.heads("v"), exact)
	rope := reference.RoPE{Rotary: s.Rotary, Base: s.Base, Interleaved: true}
	q, k = must(t)(reference.ApplyRoPE(q, rope)), must(t)(reference.ApplyRoPE(k, rope))
	agree(t, "q", q, g.heads("q"), nearAngles)
	agree(t, "k", k, g.heads("k"), nearAngles)
	p := must(t)(reference.Softmax(must(t)(reference.Scores(q, k, s.Scale)), reference.Causal(0)))
	agree(t, "probabilities", p, g.heads("probs"), nearAngles)
	agree(t, "context", must(t)(reference.Context(p, v)), g.heads("ctx"), nearAngles)
}

// rotated checks RoPE near and far, in both precisions of the angle, and attention behind it.
func (g golden) rotated(q, k, v reference.Heads, near reference.RoPE) {
	t := g.t
	for _, f32 := range []bool{false, true} {
		near.Float32Angles = f32
		tolerance := nearAngles
		if f32 {
			tolerance = sameAngles
		}
		qn, kn := must(t)(reference.ApplyRoPE(q, near)), must(t)(reference.ApplyRoPE(k, near))
		agree(t, "q", qn, g.heads("q"), tolerance)
		agree(t, "k", kn, g.heads("k"), tolerance)
		g.prefill(qn, kn, v, max(tolerance, f32Softmax))
		if g.file.Header("q_far.npy") == nil {
			continue
		}
		far := near
		far.Offset = g.shape.Far
		if !f32 {
			tolerance = farAngles
		}
		qf, kf := must(t)(reference.ApplyRoPE(q, far)), must(t)(reference.ApplyRoPE(k, far))
		agree(t, "q far", qf, g.heads("q_far"), tolerance)
		agree(t, "k far", kf, g.heads("k_far"), tolerance)
		p := must(t)(reference.Softmax(must(t)(reference.Scores(qf, kf, g.shape.Scale)), reference.Causal(0)))
		agree(t, "probabilities far", p, g.heads("probs_far"), max(tolerance, f32Softmax))
	}
}

// prefill checks probabilities and context, whole and through Attention.
func (g golden) prefill(q, k, v reference.Heads, tolerance float64) {
	t := g.t
	p := must(t)(reference.Softmax(must(t)(reference.Scores(q, k, g.shape.Scale)), reference.Causal(0)))
	agree(t, "probabilities", p, g.heads("probs"), tolerance)
	want := must(t)(reference.Swap(g.heads("ctx")))
	agree(t, "context", must(t)(reference.Context(p, v)), want, tolerance)
	agree(t, "attention", must(t)(reference.Attention(q, k, v, g.shape.Scale, reference.Causal(0))), want, tolerance)
}

// decode appends the decoded rows to the cache and finds the framework's values again, all rows at once and one by one.
func (g golden) decode(q, kOld, kNew, vOld, vNew reference.Heads, rotation, tolerance float64) {
	t, s := g.t, g.shape
	k, v := must(t)(reference.Append(kOld, kNew)), must(t)(reference.Append(vOld, vNew))
	agree(t, "all keys", k, g.heads("k_all"), rotation)
	agree(t, "all values", v, g.heads("v_all"), exact)
	want := must(t)(reference.Swap(g.heads("ctx_decode")))
	chunk := must(t)(reference.Attention(q, k, v, s.Scale, reference.Causal(s.Seq)))
	agree(t, "decoded context", chunk, want, tolerance)
	last := rows(q, s.Decode-1, s.Decode)
	p := must(t)(reference.Softmax(must(t)(reference.Scores(last, k, s.Scale)), nil))
	agree(t, "last probabilities", p, g.heads("probs_decode_last"), tolerance)
	for i := range s.Decode {
		one := must(t)(reference.Attention(rows(q, i, i+1), rows(k, 0, s.Seq+i+1), rows(v, 0, s.Seq+i+1), s.Scale, nil))
		agree(t, "decode step", one, rows(chunk, i, i+1), float64Only)
	}
}

func (g golden) numbers(name string) []float64 {
	g.t.Helper()
	var out []float64
	if err := g.file.Read(name+".npy", &out); err != nil {
		g.t.Fatal(err)
	}
	return out
}

// rows are rows from..to of every head.
func rows(x reference.Heads, from, to int) reference.Heads {
	out := make(reference.Heads, len(x))
	for h, m := range x {
		_, dim := m.Dims()
		out[h] = mat.DenseCopyOf(m.Slice(from, to, 0, dim))
	}
	return out
}

// must unwraps a result; an error ends the test.
func must(t *testing.T) func(reference.Heads, error) reference.Heads {
	return func(x reference.Heads, err error) reference.Heads {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
}

// agree asserts |got - want| <= tolerance everywhere; NaN fails.
func agree(t *testing.T, what string, got, want reference.Heads, tolerance float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d heads, want %d", what, len(got), len(want))
	}
	worst := 0.0
	for h := range got {
		r, c := got[h].Dims()
		if wr, wc := want[h].Dims(); r != wr || c != wc {
			t.Fatalf("%s: head %d is [%d, %d], want [%d, %d]", what, h, r, c, wr, wc)
		}
		for i := range r {
			for j := range c {
				off := math.Abs(got[h].At(i, j) - want[h].At(i, j))
				if !(off <= tolerance) {
					t.Fatalf("%s: head %d [%d, %d] is %v, want %v (off by %.3g, allowed %.3g)",
						what, h, i, j, got[h].At(i, j), want[h].At(i, j), off, tolerance)
				}
				worst = max(worst, off)
			}
		}
	}
	t.Logf("%s: off by at most %.2g (allowed %.2g)", what, worst, tolerance)
}
