package detect

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"codeberg.org/sbinet/npyio/npz"
	"github.com/attnb/attnb/reference"
	"gonum.org/v1/gonum/mat"
)

// golden is a layer of a known framework; the reader of its files is tested in package reference.
type golden struct {
	t    *testing.T
	file *npz.Reader
	meta struct {
		Heads           int
		KVHeads         int `json:"kv_heads"`
		Dim             int `json:"head_dim"`
		Seq, Far        int
		Rotary          int `json:"rotary_ndims"`
		Base            float64
		Scale           float64
		AttentionFactor float64 `json:"attention_factor"`
		Rope            struct {
			Theta float64 `json:"rope_theta"`
		}
	}
}

func open(t *testing.T, name string) *golden {
	t.Helper()
	g := &golden{t: t}
	g.file = must[*npz.Reader](t)(npz.Open(filepath.Join("..", "..", "cudaops", "optest", "testdata", "golden", name+".npz")))
	t.Cleanup(func() { g.file.Close() })
	var meta []uint8
	if err := g.file.Read("meta.npy", &meta); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(meta, &g.meta); err != nil {
		t.Fatal(err)
	}
	if g.meta.KVHeads == 0 {
		g.meta.KVHeads = g.meta.Heads
	}
	if g.meta.Base == 0 {
		g.meta.Base = g.meta.Rope.Theta
	}
	return g
}

func (g *golden) numbers(name string) []float64 {
	g.t.Helper()
	var data []float64
	if err := g.file.Read(name+".npy", &data); err != nil {
		g.t.Fatal(err)
	}
	return data
}

func (g *golden) heads(name string) reference.Heads {
	g.t.Helper()
	data, dims := g.numbers(name), g.file.Header(name+".npy").Descr.Shape
	if len(dims) == 2 {
		dims = []int{1, dims[0], dims[1]}
	}
	out := make(reference.Heads, dims[0])
	for h := range out {
		n := dims[1] * dims[2]
		out[h] = mat.NewDense(dims[1], dims[2], data[h*n:(h+1)*n])
	}
	return out
}

// before are the queries before RoPE.
func (g *golden) before() reference.Heads {
	if g.file.Header("q_pre.npy") != nil {
		return g.heads("q_pre")
	}
	return must[reference.Heads](g.t)(reference.Unmerge(g.heads("q_proj")[0], g.meta.Heads))
}

// What frameworks really computed: the right declaration is silent, near and far; their angles are seen to be f32 far out; and a
// declaration that leaves something out is told what it left out.
func TestRoPEGolden(t *testing.T) {
	for _, c := range []struct {
		name  string
		inter bool
		kind  Kind // what a declaration without scaling misses
	}{
		{"neox_a", false, ""}, {"gptj_a", true, ""}, {"llama_a", false, ""},
		{"llama_linear_a", false, WrongScaling}, {"llama_llama3_a", false, WrongScaling}, {"llama_dynamic_a", false, WrongScaling},
		{"llama_yarn_a", false, WrongScaling},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := open(t, c.name)
			x, q := g.before(), g.heads("q")
			declared := reference.RoPE{Rotary: g.meta.Rotary, Base: g.meta.Base, Interleaved: c.inter, Magnitude: g.meta.AttentionFactor, Float32Angles: true}
			if g.file.Header("inv_freq.npy") != nil {
				declared.InvFreq = g.numbers("inv_freq")
			}
			if f := asked(t, x, q, declared); f.Faults != nil {
				t.Error(f)
			}
			if g.file.Header("q_far.npy") != nil {
				far := declared
				far.Offset = g.meta.Far
				if f := asked(t, x, g.heads("q_far"), far); f.Faults != nil {
					t.Error(f)
				}
				far.Float32Angles = false
				if f := asked(t, x, g.heads("q_far"), far); f.Faults.kinds() != string(RoundedAngles) {
					t.Error(f)
				}
				if f := asked(t, x, g.heads("q_far"), declared); !f.has(WrongOffset) {
					t.Error(f)
				}
			}
			declared.Interleaved = !declared.Interleaved
			if f := asked(t, x, q, declared); !f.has(WrongPairing) {
				t.Error(f)
			}
			declared.Interleaved = c.inter
			declared.InvFreq, declared.Magnitude = nil, 0
			f := asked(t, x, q, declared)
			t.Log(f)
			if c.kind == "" && f.Faults != nil || c.kind != "" && !kindsIn(c.kind, f.names()...) {
				t.Error(f)
			}
		})
	}
}

// The layout of a known framework's projection, by its heads and by its context.
func TestLayoutGolden(t *testing.T) {
	for name, layout := range map[string]reference.Layout{"gpt2_a": reference.GPT2, "neox_a": reference.NeoX} {
		g := open(t, name)
		rows := g.heads("qkv")[0]
		context := must[reference.Heads](t)(reference.Swap(g.heads("ctx")))
		want := Parts{V: g.heads("v"), Context: context, Scale: g.meta.Scale}
		if layout == reference.NeoX {
			want.RoPE = &reference.RoPE{Rotary: g.meta.Rotary, Base: g.meta.Base}
		}
		for _, declared := range []reference.Layout{reference.GPT2, reference.NeoX} {
			f := must[LayoutFinding](t)(Layout(t.Context(), rows, Fused{Layout: declared, Heads: g.meta.Heads, Dim: g.meta.Dim}, want))
			if (declared == layout) != (f.Faults == nil) || declared != layout && f.Faults.kinds() != string(WrongLayout) {
				t.Errorf("%s declared %v: %v", name, declared, f)
			}
		}
	}
}
