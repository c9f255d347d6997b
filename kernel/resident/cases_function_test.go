package resident

import (
	"math"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/attnb/attnb/kernel/wire"
	"github.com/attnb/attnb/reference"
	"github.com/attnb/attnb/reference/detect"
)

// attention is a function under test, as a cell has one.
type attention func(q, k, v reference.Heads) reference.Heads

// shippedFunction is a fault that a function has, not a tensor.
type shippedFunction struct {
	id, name, topic string
	p               wire.Params
	settings        []wire.Fact
	right, wrong    attention
	kind, words     string
	done            []wire.Fact // what is asked of the wrong one, where it is not the settings
}

// plainly is attention by the reference, with what is visible of rows and keys.
func plainly(sees func(rows, keys int) reference.Visible) attention {
	return func(q, k, v reference.Heads) reference.Heads {
		rows, dim := q[0].Dims()
		keys, _ := k[0].Dims()
		return rounded(must(reference.Attention(q, k, v, 1/math.Sqrt(float64(dim)), sees(rows, keys))), detect.Float32)
	}
}

func bottomRight(rows, keys int) reference.Visible { return reference.Causal(keys - rows) }

// splitDecode is attention whose single queries sum over two halves of the keys, each by its own largest score, and join them. scaled says
// whether the halves are brought to one largest score first.
func splitDecode(scaled bool) attention {
	return func(q, k, v reference.Heads) reference.Heads {
		if rows, _ := q[0].Dims(); rows > 1 {
			return plainly(bottomRight)(q, k, v)
		}
		_, dim := q[0].Dims()
		keys, _ := k[0].Dims()
		out := make(reference.Heads, len(q))
		for h := range q {
			g := h * len(k) / len(q)
			s := must(reference.Scores(q[h:h+1], k[g:g+1], 1/math.Sqrt(float64(dim))))[0].RawRowView(0)
			sum, total, biggest := make([]float64, dim), 0.0, math.Inf(-1)
			for _, x := range s {
				biggest = max(biggest, x)
			}
			for _, part := range [][2]int{{0, keys / 2}, {keys / 2, keys}} {
				most := math.Inf(-1)
				for col := part[0]; col < part[1]; col++ {
					most = max(most, s[col])
				}
				back := 1.0
				if scaled {
					back = math.Exp(most - biggest)
				}
				for col := part[0]; col < part[1]; col++ {
					w := back * float64(float32(math.Exp(s[col]-most)))
					total += w
					for i := range sum {
						sum[i] += w * v[g].At(col, i)
					}
				}
			}
			out[h] = mat.NewDense(1, dim, nil)
			for i := range sum {
				out[h].Set(0, i, float64(float32(sum[i]/total)))
			}
		}
		return out
	}
}

// inSixteenBits is attention on bf16 data whose single queries round once less, as a cached path does.
func inSixteenBits(q, k, v reference.Heads) reference.Heads {
	rows, dim := q[0].Dims()
	keys, _ := k[0].Dims()
	s := must(reference.Scores(q, k, 1/math.Sqrt(float64(dim))))
	if rows > 1 {
		s = rounded(s, detect.BFloat16)
	}
	p := rounded(must(reference.Softmax(s, bottomRight(rows, keys))), detect.BFloat16)
	return rounded(must(reference.Context(p, v)), detect.BFloat16)
}

// overrun is attention whose scratch memory holds 256 scores: those behind it land on the first.
func overrun(q, k, v reference.Heads) reference.Heads {
	rows, dim := q[0].Dims()
	keys, _ := k[0].Dims()
	p := must(reference.Softmax(must(reference.Scores(q, k, 1/math.Sqrt(float64(dim)))), bottomRight(rows, keys)))
	for _, m := range p {
		for row := range rows {
			for col := 256; col < keys; col++ {
				m.Set(row, col, m.At(row, col-256))
			}
		}
	}
	return rounded(must(reference.Context(p, v)), detect.Float32)
}

func shippedFunctions() []shippedFunction {
	size := func(rows, keys int) []wire.Fact {
		return []wire.Fact{{Name: "geometry", Numbers: []float64{2, 2, float64(rows), float64(keys), 16}}}
	}
	bottom := wire.Params{Mask: wire.MaskCausal}
	decode := "decode = prefill = prefill in chunks"
	bf16 := []wire.Fact{{Name: "precision", Words: []string{"bf16"}}}
	return []shippedFunction{
		{"C2", "a chunk's mask forgets what is cached", "decode", bottom, nil, plainly(bottomRight), plainly(func(_, _ int) reference.Visible { return reference.Causal(0) }), decode, "", nil},
		{"C2", "a mask only where there are as many queries as keys", "probe", bottom, nil, plainly(bottomRight), plainly(func(rows, keys int) reference.Visible {
			if rows == keys {
				return reference.Causal(0)
			}
			return nil
		}), "no causal mask", "", nil},
		{"C1", "aligned at the first key", "probe", bottom, nil, plainly(bottomRight), plainly(func(_, _ int) reference.Visible { return reference.Causal(0) }), "alignment of the mask", "top-left", nil},
		{"D1", "a cached path that rounds otherwise, asked as if all were f32", "decode", bottom, bf16, inSixteenBits, inSixteenBits, decode, "", []wire.Fact{{Name: "precision", Words: []string{"f32"}}}},
		{"D2", "splits of the keys joined without their largest scores", "decode", bottom, size(7, 40), splitDecode(true), splitDecode(false), decode, "", nil},
		{"D3", "the mask dropped from 24 rows on", "decode", bottom, size(30, 40), plainly(bottomRight), plainly(func(rows, keys int) reference.Visible {
			if rows >= 24 {
				return nil
			}
			return reference.Causal(keys - rows)
		}), decode, "", nil},
		{"X1", "more keys than a scratch array holds", "probe", bottom, size(3, 257), plainly(bottomRight), overrun, "no scores fit", "", nil},
		{"X1", "the same, by its law", "decode", bottom, size(260, 260), plainly(bottomRight), overrun, decode, "", nil},
	}
}

// askAbout is a question about a function, which is called as often as the question takes.
func (c caller) askAbout(s shippedFunction, settings []wire.Fact, f attention) wire.Answer {
	c.t.Helper()
	a := c.do(wire.Request{Kind: wire.KindAsk, Params: s.p, Question: &wire.Question{Topic: s.topic, Settings: settings}})
	for a.Call != nil {
		var args []reference.Heads
		for _, x := range a.Tensors {
			data, shape := c.download(x), x.Shape
			hs := make(reference.Heads, shape[0])
			for h := range hs {
				hs[h] = mat.NewDense(shape[1], shape[2], nil)
				for i := range shape[1] * shape[2] {
					hs[h].Set(i/shape[2], i%shape[2], float64(data[h*shape[1]*shape[2]+i]))
				}
			}
			args = append(args, hs)
		}
		data, shape := packed(f(args[0], args[1], args[2]))
		out := c.upload(hsd, shape, data)
		a = c.do(wire.Request{Kind: wire.KindAsk, Number: a.Call.ID, IDs: []int{out.ID}})
	}
	c.pictured(s.topic, a)
	return a
}

func TestShippedFunctions(t *testing.T) {
	p := onHost(t)
	for _, s := range shippedFunctions() {
		t.Run(s.id+" "+s.topic+" "+s.name, func(t *testing.T) {
			c := p.dial()
			c.t = t
			defer c.Close()
			if a := c.askAbout(s, s.settings, s.right); !silent(a) {
				t.Errorf("right: %s", a.Text)
			}
			done := s.settings
			if s.done != nil {
				done = s.done
			}
			if a := c.askAbout(s, done, s.wrong); a.Finding.Pass || !named(a, s.kind) || !strings.Contains(a.Finding.Sentence, s.words) {
				t.Errorf("want %q with %q: %s", s.kind, s.words, a.Text)
			}
		})
	}
}

// TF32 reads 11 bits of an operand: where one is cut, 3.14 * 3.14 comes to 9.8616, not 9.8596. The audit of a framework's score names the
// stage, and the ladder, whose rung cuts both, the format.
func TestShippedTF32(t *testing.T) {
	p := onHost(t)
	c := p.dial()
	defer c.Close()
	const x = float32(3.14)
	cut := float32(detect.TF32.Round(float64(x)))
	z := c.upload(hsd, []int{1, 1, 2}, []float32{0, x})
	s := c.run1(wire.OpScores, wire.Params{Scale: 1}, z, z)
	ours := c.download(s)[0]
	if math.Abs(float64(cut*x)-9.8616) > 1e-4 || math.Abs(float64(ours)-9.8596) > 1e-4 {
		t.Fatalf("planted %v for %v", cut*x, ours)
	}
	stage := func(v float32) wire.Answer {
		return c.audit(s, s, c.upload([]string{"heads", "query", "key"}, []int{1, 1, 1}, []float32{v}))
	}
	if a := stage(ours); !silent(a) {
		t.Errorf("right: %s", a.Text)
	}
	if a := stage(cut * x); a.Finding.Pass || !named(a, "scores") {
		t.Errorf("TF32: %s", a.Text)
	}
	for off, place := range map[float32]string{cut*cut - ours: "TF32", x*x - ours: "is less than any"} {
		asked := []wire.Fact{{Name: "cell", Numbers: []float64{0, 0, 0}}, {Name: "off", Numbers: []float64{math.Abs(float64(off))}}}
		a := c.ask("ladder", wire.Params{}, asked, []string{"x"}, s)
		if words := a.Text[strings.LastIndex(strings.TrimSpace(a.Text), "\n"):]; !a.Finding.Pass || !strings.Contains(words, place) {
			t.Errorf("%v: want %q: %s", off, place, a.Text)
		}
	}
}
