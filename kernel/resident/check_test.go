package resident

import (
	"bytes"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/cudaops/host"
	"github.com/attnb/attnb/kernel/wire"
)

func contains(s, part string) bool { return strings.Contains(s, part) }

// Every op and every arrangement of its inputs, checked at the end of a chain. Shapes are awkward on purpose.
func TestCheckChains(t *testing.T) {
	p := onHost(t)
	c := p.dial()
	defer c.Close()
	split := func(l wire.Layout, heads, kv, seq, dim int) []wire.Tensor {
		return c.run(wire.OpSplit, wire.Params{Layout: l, Heads: heads, KVHeads: kv}, c.random(1, fused, seq, (heads+2*kv)*dim))
	}
	rope := func(x wire.Tensor, p wire.Params) wire.Tensor { return c.run1(wire.OpRoPE, p, x) }
	for name, chain := range map[string]func() wire.Tensor{
		"gpt2 split": func() wire.Tensor { return split(wire.LayoutGPT2, 3, 3, 5, 4)[1] },
		"neox prefill": func() wire.Tensor {
			x := split(wire.LayoutNeoX, 4, 4, 9, 16)
			r := wire.Params{Rotary: 8, Offset: 3}
			return c.run1(wire.OpPrefill, causal, rope(x[0], r), rope(x[1], r), x[2])
		},
		"grouped scores to output": func() wire.Tensor {
			x := split(wire.LayoutGrouped, 6, 2, 7, 8)
			r := wire.Params{Rotary: 8, Interleaved: true, Base: 5e5}
			s := c.run1(wire.OpScores, causal, rope(x[0], r), rope(x[1], r))
			ctx := c.run1(wire.OpContext, wire.Params{}, c.run1(wire.OpSoftmax, wire.Params{}, s), x[2])
			merged := c.run1(wire.OpMerge, wire.Params{}, ctx)
			out := c.run1(wire.OpLinear, wire.Params{}, merged, c.random(5, []string{"out", "in"}, 11, 48), c.random(6, []string{"out"}, 11))
			return c.run1(wire.OpAdd, wire.Params{}, out, c.random(7, fused, 7, 11))
		},
		"positions and frequencies": func() wire.Tensor {
			return rope(c.random(2, hsd, 3, 4, 6), wire.Params{Rotary: 4, Positions: []int{0, 0, 1, 131071}, InvFreq: []float64{1, 0.01}, Magnitude: 1.5})
		},
		"f32 angles": func() wire.Tensor {
			return rope(c.random(2, hsd, 3, 4, 6), wire.Params{Rotary: 6, Offset: 16000, Float32Angles: true})
		},
		"rows-major": func() wire.Tensor {
			q, k, v := c.random(1, shd, 5, 4, 8), c.random(2, shd, 5, 2, 8), c.random(3, shd, 5, 2, 8)
			r := wire.Params{Rotary: 8}
			return c.run1(wire.OpPrefill, causal, rope(q, r), rope(k, r), v)
		},
		"decode behind a cache": func() wire.Tensor {
			k, v := c.random(1, hsd, 2, 5, 8), c.random(2, hsd, 2, 5, 8)
			for i := range 4 {
				k = c.run1(wire.OpAppend, wire.Params{}, k, rope(c.random(uint64(10+i), hsd, 2, 1, 8), wire.Params{Rotary: 8, Offset: 5 + i}))
				v = c.run1(wire.OpAppend, wire.Params{}, v, c.random(uint64(20+i), hsd, 2, 1, 8))
			}
			return c.run1(wire.OpDecode, wire.Params{}, c.random(3, hsd, 6, 1, 8), k, v)
		},
		"prefill behind a cache": func() wire.Tensor {
			k := c.run1(wire.OpAppend, wire.Params{}, c.random(1, hsd, 2, 5, 8), c.random(2, hsd, 2, 3, 8))
			return c.run1(wire.OpPrefill, causal, c.random(3, hsd, 4, 3, 8), k, k)
		},
		"rows-major cache": func() wire.Tensor {
			k := c.run1(wire.OpAppend, wire.Params{}, c.random(1, shd, 5, 2, 8), c.random(2, shd, 2, 2, 8))
			return c.run1(wire.OpDecode, wire.Params{}, c.random(3, []string{"heads", "dim"}, 4, 8), k, k)
		},
		"one head of scores, some rows, empty rows": func() wire.Tensor {
			s := c.run1(wire.OpScores, wire.Params{Mask: wire.MaskDiagonal, Diagonal: -2}, c.random(1, hsd, 3, 6, 4), c.random(2, hsd, 3, 5, 4))
			head := c.run1(wire.OpIndex, wire.Params{Axis: "heads", Index: 1}, s)
			return c.run1(wire.OpSoftmax, wire.Params{}, c.run1(wire.OpRows, wire.Params{Index: 1, Count: 4}, head))
		},
		"context beside values that nothing looks at": func() wire.Tensor {
			s := c.run1(wire.OpScores, wire.Params{Mask: wire.MaskDiagonal, Diagonal: 1}, c.random(1, hsd, 4, 3, 8), c.random(2, hsd, 2, 5, 8))
			v := c.download(c.random(3, hsd, 2, 5, 6))
			v[4*6+1], v[9*6+2] = float32(math.NaN()), float32(math.Inf(-1)) // the last key: query 2 of 3 sees four
			return c.run1(wire.OpContext, wire.Params{}, c.run1(wire.OpSoftmax, wire.Params{}, s), c.upload(hsd, []int{2, 5, 6}, v))
		},
		"batch item, head, swap": func() wire.Tensor {
			b := c.random(1, []string{"batch", "heads", "seq", "dim"}, 2, 3, 4, 6)
			x := c.run1(wire.OpIndex, wire.Params{Axis: "batch", Index: 1}, c.run1(wire.OpSoftmax, wire.Params{}, b))
			return c.run1(wire.OpIndex, wire.Params{Axis: "heads", Index: 2}, c.run1(wire.OpSwap, wire.Params{}, x))
		},
		"matrix turned, by head": func() wire.Tensor {
			x := c.run1(wire.OpSwap, wire.Params{}, c.random(1, fused, 12, 5))
			y := c.run1(wire.OpHeads, wire.Params{Heads: 3}, x)
			return c.run1(wire.OpRows, wire.Params{Index: 2, Count: 2}, rope(y, wire.Params{Rotary: 2}))
		},
		"rows of rows-major": func() wire.Tensor {
			return c.run1(wire.OpRows, wire.Params{Index: 1, Count: 3}, c.random(1, shd, 5, 2, 4))
		},
		"relabelled": func() wire.Tensor {
			x := c.run1(wire.OpAxes, wire.Params{Axes: shd}, c.random(1, hsd, 5, 2, 4))
			return rope(x, wire.Params{Rotary: 4, Offset: 1})
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := chain()
			a := c.check(x)
			cells := 1
			for _, n := range x.Shape {
				cells *= n
			}
			if v := a.Verdict; !v.Pass || v.Failed != 0 || v.Cells != cells || !(v.MaxRatio < 0.9) || !(v.RelL2 <= 0.5*v.LimitL2) {
				t.Errorf("%v %v: %+v\n%s", x.Axes, x.Shape, v, a.Text)
			}
			d, err := c.Display(a.DisplayID)
			if err != nil || len(d.Parts) != 2 || !bytes.HasPrefix(d.Parts[0].Data, []byte("\x89PNG")) || !strings.HasPrefix(string(d.Parts[1].Data), a.Text[:strings.IndexByte(a.Text, '\n')]) {
				t.Errorf("display: %v, %d parts", err, len(d.Parts))
			}
		})
	}
}

// What a mask hides stays hidden, or is refused, when a matrix is taken apart.
func TestMaskFollowsViews(t *testing.T) {
	p := onHost(t)
	c := p.dial()
	defer c.Close()
	s := c.run1(wire.OpScores, causal, c.random(1, hsd, 2, 3, 4), c.random(2, hsd, 2, 5, 4))
	whole := c.download(c.run1(wire.OpSoftmax, wire.Params{}, s)) // [2, 3, 5]
	row := c.run1(wire.OpSoftmax, wire.Params{}, c.run1(wire.OpIndex, wire.Params{Axis: "query", Index: 1},
		c.run1(wire.OpIndex, wire.Params{Axis: "heads", Index: 1}, s)))
	for i, v := range c.download(row) {
		if v != whole[15+5+i] || (i > 3) != (v == 0) { // query 1 of 3 sees keys 0 to 3 of 5
			t.Errorf("key %d: %v, in the whole %v", i, v, whole[15+5+i])
		}
	}
	_, err := c.Do(wire.Request{Kind: wire.KindRun, Op: wire.OpIndex, Params: wire.Params{Axis: "query", Index: 1}, IDs: []int{s.ID}})
	if want := `Index: axis "query" cannot be taken apart under a mask: apply Softmax first (x: [heads 2, query 3, key 5])`; err == nil || err.Error() != want {
		t.Errorf("error %v, want %q", err, want)
	}
	unmasked := c.download(c.run1(wire.OpSoftmax, wire.Params{Mask: wire.MaskNone}, s))
	if unmasked[4] == 0 || whole[4] != 0 {
		t.Errorf("query 0, key 4: %v unmasked, %v masked", unmasked[4], whole[4])
	}
}

// faulty is a backend with one planted fault.
type faulty struct {
	*host.Backend
	rope    func(r cudaops.RoPE) cudaops.RoPE
	softmax func(m cudaops.Mask) cudaops.Mask
	decode  func(q, k, v cudaops.View) (cudaops.View, cudaops.View, cudaops.View)
	scale   float32
	bug     bool // panic in the first Download
}

// Elements makes it no [cudaops.Addressable], which would not be asked to download.
func (f *faulty) Elements() {}

func (f *faulty) RoPE(dst, src cudaops.View, r cudaops.RoPE) error {
	if f.rope != nil {
		r = f.rope(r)
	}
	return f.Backend.RoPE(dst, src, r)
}

func (f *faulty) Softmax(dst, src cudaops.View, m cudaops.Mask) error {
	if f.softmax != nil {
		m = f.softmax(m)
	}
	return f.Backend.Softmax(dst, src, m)
}

func (f *faulty) Decode(dst, q, k, v cudaops.View, scale float32) error {
	if f.decode != nil {
		q, k, v = f.decode(q, k, v)
	}
	return f.Backend.Decode(dst, q, k, v, scale)
}

func (f *faulty) Scores(dst, q, k cudaops.View, scale float32) error {
	if f.scale != 0 {
		scale *= f.scale
	}
	return f.Backend.Scores(dst, q, k, scale)
}

func (f *faulty) Download(dst []float32, src cudaops.Memory, offset int) error {
	if f.bug {
		f.bug = false
		panic("planted")
	}
	return f.Backend.Download(dst, src, offset)
}

// A wrong device is found out, and by the cells that are wrong.
func TestCheckFindsFaults(t *testing.T) {
	for _, f := range []struct {
		name string
		b    *faulty
	}{
		{"offset one too far", &faulty{rope: func(r cudaops.RoPE) cudaops.RoPE { r.Offset++; return r }}},
		{"the other pairing", &faulty{rope: func(r cudaops.RoPE) cudaops.RoPE { r.Convention = cudaops.Interleaved; return r }}},
		{"top-left mask", &faulty{softmax: func(m cudaops.Mask) cudaops.Mask { m.Diagonal = 0; return m }}},
		{"no mask", &faulty{softmax: func(cudaops.Mask) cudaops.Mask { return cudaops.Mask{} }}},
		{"scale off by 1e-5", &faulty{scale: 1 + 1e-5}},
		{"NaN", &faulty{scale: float32(math.NaN())}},
	} {
		t.Run(f.name, func(t *testing.T) {
			f.b.Backend = host.New(host.Options{})
			p := start(t, f.b)
			c := p.dial()
			defer c.Close()
			q, k := c.random(1, hsd, 2, 3, 4), c.random(2, hsd, 2, 7, 4)
			if f.b.rope != nil {
				q = c.run1(wire.OpRoPE, wire.Params{Rotary: 4, Offset: 2}, q)
			}
			s := c.run1(wire.OpScores, causal, q, k)
			x := c.run1(wire.OpSoftmax, wire.Params{}, s)
			if f.b.scale > 1 { // softmax's own bound is wider than so small a fault
				x = s
			}
			c.name(x, "x")
			a := c.check(x)
			if v := a.Verdict; v.Pass || v.Failed == 0 || !(v.MaxRatio > 1) {
				t.Errorf("verdict %+v", v)
			}
			d, err := c.Display(a.DisplayID)
			if err != nil || !bytes.HasPrefix(d.Parts[0].Data, []byte("\x89PNG")) {
				t.Errorf("picture of the fault: %v", err)
			}
			if !contains(a.Text, "Check \"x\": FAIL") {
				t.Errorf("report:\n%s", a.Text)
			}
		})
	}
}

// The report names the worst cell by axis and token, with both values, and lists the chain.
func TestReport(t *testing.T) {
	b := &faulty{Backend: host.New(host.Options{}), softmax: func(m cudaops.Mask) cudaops.Mask { m.Diagonal--; return m }}
	p := start(t, b)
	c := p.dial()
	defer c.Close()
	up := func(v ...float32) wire.Tensor {
		a, err := c.Upload(wire.Request{Kind: wire.KindUpload, Shape: []int{1, 2, 2}, Axes: hsd}, v)
		if err != nil {
			t.Fatal(err)
		}
		return a.Tensors[0]
	}
	q := up(1, 0, 0, 1)
	c.name(q, "q")
	s := c.run1(wire.OpScores, wire.Params{Mask: wire.MaskCausal, Scale: 0.5}, q, up(1, 0, 0, 1))
	x := c.run1(wire.OpSoftmax, wire.Params{}, s)
	a := c.do(wire.Request{Kind: wire.KindCheck, IDs: []int{x.ID}, Labels: []string{"the", "cat"}})
	// Row 0 should see key 0 alone, [1 0], and sees nothing; row 1 should be softmax(0, 0.5) and is [1 0].
	want := `Check Softmax: FAIL, error/bound R, 3 of 4 cells
  Softmax [heads 1, query 2, key 2]: 4 cells against float64, 3 failed
  max abs 1, max rel 1.65, max ULP 1.065e+09
  relative L2 1.08, R of its limit L
  1 zero (masked: 1), 3 mismatched
  error/bound: exact 1, beyond 3
  worst cell: head 0, query 1 "cat", key 0 "the": got 1, float64 0.377540668798, off by 0.622, bound B
  then: head 0, query 0 "the", key 0 "the": got 0, want 1, T times what is allowed
  then: head 0, query 1 "cat", key 1 "cat": got 0, want 0.622459331, T times what is allowed
  replayed:
    1 "q" [heads 1, seq 2, dim 2]: FromSlice
    2 FromSlice [heads 1, seq 2, dim 2]
    3 Scores(1, 2): scale 0.5 -> [heads 1, query 2, key 2]
    4 Softmax(3): causal, diagonal 0 -> [heads 1, query 2, key 2]
  the bound of a cell is what these may add up to (u = 2^-24):
    Scores: 6 roundings of |scale| sum |q||k|, and the errors of both
    Softmax: p times the errors of the exponents and up to 10 roundings, and the errors of all scores of the row
`
	// How tight the bound is belongs to package bound.
	got := regexp.MustCompile(`error/bound \S+,`).ReplaceAllString(a.Text, "error/bound R,")
	got = regexp.MustCompile(`bound \d\S+\n`).ReplaceAllString(got, "bound B\n")
	got = regexp.MustCompile(`\S+ of its limit \S+`).ReplaceAllString(got, "R of its limit L")
	got = regexp.MustCompile(`\S+ times what`).ReplaceAllString(got, "T times what")
	if got != want {
		t.Errorf("report\n%s\nwant\n%s", got, want)
	}
}

// A fault of the process is an answer, and the process stays.
func TestPanic(t *testing.T) {
	p := start(t, &faulty{Backend: host.New(host.Options{}), bug: true})
	c := p.dial()
	defer c.Close()
	x := c.random(1, fused, 2, 3)
	_, err := c.Do(wire.Request{Kind: wire.KindDownload, IDs: []int{x.ID}})
	if want := "internal fault of the device process: planted"; err == nil || err.Error() != want {
		t.Fatalf("error %v, want %q", err, want)
	}
	if got := c.download(x); len(got) != 6 {
		t.Errorf("%d values after the panic", len(got))
	}
}
