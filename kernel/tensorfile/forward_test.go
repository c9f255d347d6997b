package tensorfile

import (
	"math"
	"path/filepath"
	"testing"
)

// What OpenModel says of a model is enough to run it: here the notebooks' own, in float64 and in plain loops, against what PyTorch
// made of the same tokens in float64 arithmetic.
func TestForwardPass(t *testing.T) {
	dir, err := filepath.Abs("../../notebooks/models/induction")
	if err != nil {
		t.Fatal(err)
	}
	m, err := OpenModel(dir)
	if err != nil {
		t.Fatal(err)
	}
	w := func(name string) matrix { return loadMatrix(t, m.Weights, name) }
	golden := func(name string) matrix { return loadMatrix(t, filepath.Join(dir, "golden.npz"), name) }
	project := func(x matrix, p Projection) matrix { return linear(x, w(p.Weight), w(p.Bias).data) }

	var x matrix
	table := w("gpt_neox.embed_in.weight")
	for _, id := range golden("ids").data {
		x.add(table.row(int(id)))
	}
	x.close(t, "embeddings", golden("embeddings"))
	for i, l := range m.Layers {
		at := string(rune('0' + i))
		n := norm(x, w(l.Norm.Weight).data, w(l.Norm.Bias).data, l.Norm.Epsilon)
		rows := project(n, l.QKV)
		var context matrix
		parts := [3][]matrix{}
		for h := range l.Heads {
			for part := range 3 { // NeoX: q k v of head 0, ...
				from := (3*h + part) * l.HeadDim
				parts[part] = append(parts[part], rows.columns(from, from+l.HeadDim))
			}
		}
		for part, name := range []string{"q", "k"} {
			joined(parts[part]).close(t, name+"_pre."+at, golden(name+"_pre."+at))
			for h := range parts[part] {
				parts[part][h].rotate(l.Rotary)
			}
			joined(parts[part]).close(t, name+"."+at, golden(name+"."+at))
		}
		var probabilities []matrix
		for h := range l.Heads {
			p := attend(parts[0][h], parts[1][h], l.Scale)
			probabilities = append(probabilities, p)
			context.beside(linear(p, parts[2][h].transposed(), nil))
		}
		joined(probabilities).close(t, "p."+at, golden("p."+at))
		x.plus(project(context, l.Out))
		mlp := "gpt_neox.layers." + at + ".mlp."
		after := "gpt_neox.layers." + at + ".post_attention_layernorm."
		inner := linear(norm(x, w(after+"weight").data, w(after+"bias").data, l.Norm.Epsilon), w(mlp+"dense_h_to_4h.weight"), w(mlp+"dense_h_to_4h.bias").data)
		for j, v := range inner.data {
			inner.data[j] = v / 2 * (1 + math.Erf(v/math.Sqrt2)) // GELU
		}
		x.plus(linear(inner, w(mlp+"dense_4h_to_h.weight"), w(mlp+"dense_4h_to_h.bias").data))
		x.close(t, "hidden."+at, golden("hidden."+at))
	}
	last := norm(x, w("gpt_neox.final_layer_norm.weight").data, w("gpt_neox.final_layer_norm.bias").data, m.Layers[0].Norm.Epsilon)
	logits := linear(last, w("embed_out.weight"), nil)
	logits.close(t, "logits", golden("logits"))

	// It does what it was trained for: from the second period on, the likeliest token is the next one.
	ids := golden("ids").data
	for s := 13; s < len(ids)-1; s++ {
		best := 0
		for id, v := range logits.row(s) {
			if v > logits.row(s)[best] {
				best = id
			}
		}
		if best != int(ids[s+1]) {
			t.Errorf("after token %d it expects %d, next is %v", s, best, ids[s+1])
		}
	}
}

// matrix has rows of cols numbers.
type matrix struct {
	cols int
	data []float64
}

// loadMatrix joins all dimensions but the last.
func loadMatrix(t *testing.T, path, name string) matrix {
	t.Helper()
	shape, data, err := Load(path, name)
	if err != nil {
		t.Fatal(err)
	}
	m := matrix{cols: shape[len(shape)-1]}
	for _, v := range data {
		m.data = append(m.data, float64(v))
	}
	return m
}

func (m matrix) rows() int           { return len(m.data) / m.cols }
func (m matrix) row(i int) []float64 { return m.data[i*m.cols : (i+1)*m.cols] }

func (m *matrix) add(row []float64) { m.cols, m.data = len(row), append(m.data, row...) }

func (m *matrix) plus(x matrix) {
	for i, v := range x.data {
		m.data[i] += v
	}
}

func (m matrix) columns(from, to int) (out matrix) {
	for i := range m.rows() {
		out.add(m.row(i)[from:to])
	}
	return out
}

func (m *matrix) beside(x matrix) {
	var out matrix
	for i := range x.rows() {
		row := x.row(i)
		if m.cols > 0 {
			row = append(append([]float64{}, m.row(i)...), row...)
		}
		out.add(row)
	}
	*m = out
}

func (m matrix) transposed() matrix {
	out := matrix{cols: m.rows()}
	for j := range m.cols {
		for i := range m.rows() {
			out.data = append(out.data, m.row(i)[j])
		}
	}
	return out
}

func joined(parts []matrix) (out matrix) {
	for _, p := range parts {
		out.cols, out.data = p.cols, append(out.data, p.data...)
	}
	return out
}

// linear is x w^T + bias, w [out, in].
func linear(x, w matrix, bias []float64) matrix {
	out := matrix{cols: w.rows()}
	for i := range x.rows() {
		for j := range w.rows() {
			sum := 0.0
			if bias != nil {
				sum = bias[j]
			}
			for k, v := range x.row(i) {
				sum += v * w.row(j)[k]
			}
			out.data = append(out.data, sum)
		}
	}
	return out
}

// norm is LayerNorm of each row.
func norm(x matrix, weight, bias []float64, epsilon float64) (out matrix) {
	for i := range x.rows() {
		row := append([]float64{}, x.row(i)...)
		mean, variance := 0.0, 0.0
		for _, v := range row {
			mean += v / float64(len(row))
		}
		for _, v := range row {
			variance += (v - mean) * (v - mean) / float64(len(row))
		}
		for j := range row {
			row[j] = (row[j]-mean)/math.Sqrt(variance+epsilon)*weight[j] + bias[j]
		}
		out.add(row)
	}
	return out
}

// rotate turns the pairs (i, i + Dims/2) of row p by p * Base^(-2i/Dims).
func (m matrix) rotate(r Rotary) {
	for p := range m.rows() {
		row, half := m.row(p), r.Dims/2
		for i := range half {
			sin, cos := math.Sincos(float64(p) * math.Pow(r.Base, -2*float64(i)/float64(r.Dims)))
			row[i], row[i+half] = row[i]*cos-row[i+half]*sin, row[i+half]*cos+row[i]*sin
		}
	}
}

// attend is softmax(scale q k^T), causal.
func attend(q, k matrix, scale float64) matrix {
	p := linear(q, k, nil)
	for i := range p.rows() {
		row, top, sum := p.row(i), math.Inf(-1), 0.0
		for j := range i + 1 {
			top = max(top, scale*row[j])
		}
		for j := range row {
			if j > i {
				row[j] = 0
				continue
			}
			row[j] = math.Exp(scale*row[j] - top)
			sum += row[j]
		}
		for j := range row {
			row[j] /= sum
		}
	}
	return p
}

// close sees that all numbers are those expected, which were rounded to f32.
func (m matrix) close(t *testing.T, name string, want matrix) {
	t.Helper()
	if len(m.data) != len(want.data) || m.cols != want.cols {
		t.Fatalf("%s: %d numbers in rows of %d, want %d in rows of %d", name, len(m.data), m.cols, len(want.data), want.cols)
	}
	for i, v := range m.data {
		if !(math.Abs(v-want.data[i]) <= 1e-7*math.Abs(want.data[i])+1e-10) {
			t.Fatalf("%s: number %d is %.9g, want %.9g", name, i, v, want.data[i])
		}
	}
}
