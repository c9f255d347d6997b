package resident

import (
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/attnb/attnb/kernel/resident/chain"
	"github.com/attnb/attnb/kernel/wire"
	"github.com/attnb/attnb/reference"
	"github.com/attnb/attnb/reference/detect"
)

// Faults that real projects shipped, each asked about as a cell asks: the tensor that it made has to be named for what it is, and the
// right one has to raise nothing.

// shipped is one fault: what is asked of the right tensors, with what in place of them where the fault is.
type shipped struct {
	id       string // of docs/cases.md; empty: of none
	name     string
	topic    string
	p        wire.Params // the declaration
	settings []wire.Fact
	right    map[string]reference.Heads
	wrong    map[string]reference.Heads // roles whose tensors differ
	kind     string
	words    string      // in the sentence; empty: any
	done     []wire.Fact // in place of the settings, where that is the fault; nil: the same
}

// normals are seeded values as f32 holds them.
func normals(seed uint64, heads, rows, dim int) reference.Heads {
	r := rand.New(rand.NewPCG(seed, 2))
	out := make(reference.Heads, heads)
	for h := range out {
		out[h] = mat.NewDense(rows, dim, nil)
		out[h].Apply(func(_, _ int, _ float64) float64 { return float64(float32(r.NormFloat64())) }, out[h])
	}
	return out
}

func must[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}

// turned rotates x as r says.
func turned(x reference.Heads, r wire.Params) reference.Heads {
	return must(reference.ApplyRoPE(x, chain.ReferenceRoPE(r)))
}

// fusedBy is a row of q, k and v in a layout, by what Split makes of column numbers.
func fusedBy(l reference.Layout, q, k, v reference.Heads) reference.Heads {
	seq, dim := q[0].Dims()
	width := (len(q) + 2*len(k)) * dim
	numbers := mat.NewDense(1, width, nil)
	for i := range width {
		numbers.Set(0, i, float64(i))
	}
	qs, ks, vs, err := reference.Split(numbers, l, len(q), len(k), dim)
	if err != nil {
		panic(err)
	}
	out := mat.NewDense(seq, width, nil)
	for p, part := range []reference.Heads{q, k, v} {
		for h, m := range part {
			for i := range dim {
				at := int([]reference.Heads{qs, ks, vs}[p][h].At(0, i))
				for row := range seq {
					out.Set(row, at, m.At(row, i))
				}
			}
		}
	}
	return reference.Heads{out}
}

// expanded repeats each KV head for its group, or lays all of them one behind another, which is wrong.
func expanded(k reference.Heads, heads int, tiled bool) reference.Heads {
	out := make(reference.Heads, heads)
	for h := range out {
		if out[h] = k[h*len(k)/heads]; tiled {
			out[h] = k[h%len(k)]
		}
	}
	return out
}

// each changes every element.
func each(x reference.Heads, f func(row, col int, v float64) float64) reference.Heads {
	out := make(reference.Heads, len(x))
	for h, m := range x {
		out[h] = mat.DenseCopyOf(m)
		out[h].Apply(f, m)
	}
	return out
}

// flatHeads reads a tensor as one row.
func flatHeads(x reference.Heads) reference.Heads {
	all := chain.Flat(x)
	return reference.Heads{mat.NewDense(1, len(all), all)}
}

// rounded is x as p keeps it.
func rounded(x reference.Heads, p detect.Precision) reference.Heads {
	return each(x, func(_, _ int, v float64) float64 { return p.Round(v) })
}

func allShipped() []shipped {
	return slices.Concat(rotationFaults(), layoutFaults(), maskFaults(), cacheFaults())
}

// named says whether an answer names a fault of this kind: as what is wrong, or within the tie that holds it.
func named(a wire.Answer, kind string) bool {
	return slices.ContainsFunc(a.Finding.Faults, func(f wire.Fault) bool { return f.Kind == kind }) || strings.Contains(a.Finding.Sentence, "("+kind+")")
}

func silent(a wire.Answer) bool {
	return a.Finding.Pass && len(a.Finding.Faults) == 0 && strings.Contains(a.Text, ": pass: ")
}

func TestShippedFaults(t *testing.T) {
	p := onHost(t)
	for _, s := range allShipped() {
		t.Run(s.id+" "+s.topic+" "+s.name, func(t *testing.T) {
			c := p.dial()
			c.t = t
			defer c.Close()
			ask := func(wrong map[string]reference.Heads, settings []wire.Fact) wire.Answer {
				var roles []string
				var xs []wire.Tensor
				for role, x := range s.right {
					if other, ok := wrong[role]; ok {
						x = other
					}
					data, shape := packed(x)
					axes := hsd
					switch {
					case role == "rows" && s.topic == "layout", role == "merged":
						shape, axes = shape[1:], fused
					case role == "p":
						axes = []string{"heads", "query", "key"}
					case role == "flat" || role == "sinks":
						shape, axes = shape[2:], []string{"dim"}
					}
					roles, xs = append(roles, role), append(xs, c.upload(axes, shape, data))
				}
				return c.ask(s.topic, s.p, settings, roles, xs...)
			}
			if a := ask(nil, s.settings); !silent(a) {
				t.Errorf("right: %s", a.Text)
			}
			done := s.settings
			if s.done != nil {
				done = s.done
			}
			a := ask(s.wrong, done)
			if a.Finding.Pass || !named(a, s.kind) || !strings.Contains(a.Finding.Sentence, s.words) || !strings.Contains(a.Text, ": FAIL: ") {
				t.Errorf("want %q with %q: %s", s.kind, s.words, a.Text)
			}
		})
	}
}

// Every case of docs/cases.md has a test, and every test of a case is listed there.
func TestEveryCaseHasATest(t *testing.T) {
	text, err := os.ReadFile("../../docs/cases.md")
	if err != nil {
		t.Fatal(err)
	}
	tested := map[string]bool{}
	for _, s := range allShipped() {
		tested[s.id] = true
	}
	for _, f := range shippedFunctions() {
		tested[f.id] = true
	}
	tested["F3"] = true // TestShippedTF32
	delete(tested, "")
	for _, line := range strings.Split(string(text), "\n") {
		cells := strings.Split(line, "|")
		if len(cells) < 5 || !regexp.MustCompile(`^ [A-Z][0-9]+ $`).MatchString(cells[1]) {
			continue
		}
		id := strings.TrimSpace(cells[1])
		if !tested[id] {
			t.Errorf("%s has no test", id)
		}
		delete(tested, id)
	}
	for id := range tested {
		t.Errorf("docs/cases.md does not list %s", id)
	}
	for _, id := range strings.Fields("R1 R3 R4 R5 O1 O2 O3 O4 O5 O8 O9 O10 P1 P2 P3 P4 P5 S1 S2 S3 Q1 Q2 Q4 Q5 G1 M1 K1 C1 C2 N1 N3 W1 T1 A1 F1 F3 D1 D2 D3 X1") {
		if !strings.Contains(string(text), "\n| "+id+" |") {
			t.Errorf("docs/cases.md has lost %s", id)
		}
	}
}

// packed are values in the order of an upload.
func packed(x reference.Heads) (data []float32, shape []int) {
	rows, dim := x[0].Dims()
	for _, m := range x {
		for i := range rows {
			for _, v := range mat.Row(nil, i, m) {
				data = append(data, float32(v))
			}
		}
	}
	return data, []int{len(x), rows, dim}
}
