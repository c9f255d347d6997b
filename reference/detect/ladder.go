package detect

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/attnb/attnb/reference"
	"gonum.org/v1/gonum/mat"
)

// Cell is one number of attention, to be computed step by step: element Column of softmax(scale q.k) v for one query, or the
// score of one key.
type Cell struct {
	Query         []float64
	Keys          *mat.Dense // [T, d]
	Values        *mat.Dense // [T, d']; nil: the cell is the score of key Column
	Column        int
	Scale         float64            // 0 means 1/sqrt(d)
	RoPE          *reference.RoPE    // turns the keys, row t to its Position(t), and the query; nil: none
	QueryPosition int                // to which the query turns
	Visible       func(key int) bool // nil: every key
	// What comes between the scores and their softmax. A cell that is a score comes before it.
	Softcap float64   // c tanh(s/c) in place of a score s; 0: none
	Bias    []float64 // one a key, added; nil: none
	Slope   float64   // of ALiBi: slope times |key - Own| is taken off
	Own     int       // key at which the query stands
	Sink    *float64  // one more logit, which has no value; nil: none
}

// Format is how the numbers of a rung are rounded.
type Format struct {
	Name    string
	Input   Precision // operands of q.k and p.v, each rounded to this before it is multiplied
	Between Precision // every result that is stored: turned rows, scores, probabilities, the cell
	Sum     Precision // products and partial sums
	Angles  Angles
}

// Formats are the rungs of the ladder, from the truth down. TF32 is f32 whose products read 11 bits of each operand, as tensor
// cores do; bf16 and fp16 store every result in 16 bits and sum in f32, as mixed-precision attention does, with f32 angles.
func Formats() []Format {
	return []Format{
		{"float64", Float64, Float64, Float64, Float64Angles},
		{"f32", Float32, Float32, Float32, Float64Angles},
		{"f32, f32 angles", Float32, Float32, Float32, Float32Angles},
		{"TF32", TF32, Float32, Float32, Float64Angles},
		{"fp16", Float16, Float16, Float32, Float32Angles},
		{"bf16", BFloat16, BFloat16, Float32, Float32Angles},
	}
}

// Step is one stage of a cell: the value that weighs most in it, and what its rounding changed so far.
type Step struct {
	Name  string
	Value float64 // of the element shown
	Error float64 // largest difference of the stage from float64, over all its elements
}

// Rung is the cell in one format.
type Rung struct {
	Format
	Value float64
	Error float64 // |Value - float64|
	Steps []Step
}

func (r Rung) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-16s %.9g (off by %.2g)", r.Name, r.Value, r.Error)
	for _, s := range r.Steps {
		fmt.Fprintf(&b, "; %s %.6g (%.1g)", s.Name, s.Value, s.Error)
	}
	return b.String()
}

// Rungs is a ladder.
type Rungs []Rung

func (r Rungs) String() string {
	lines := make([]string, len(r))
	for i, rung := range r {
		lines[i] = rung.String()
	}
	return strings.Join(lines, "\n")
}

// Place says between which rungs an error lies: which formats are at least as exact, which are not.
func (r Rungs) Place(off float64) string {
	var within, beyond []string
	for _, rung := range r[1:] {
		if rung.Error <= off {
			within = append(within, rung.Name)
		} else {
			beyond = append(beyond, rung.Name)
		}
	}
	switch {
	case math.IsNaN(off):
		return "NaN is no rounding error"
	case len(within) == 0:
		return fmt.Sprintf("%.2g is less than any of these formats makes of this cell", off)
	case len(beyond) == 0:
		return fmt.Sprintf("%.2g is more than any of these formats makes of this cell", off)
	}
	return fmt.Sprintf("%.2g is as much as %s could make of this cell, less than %s", off, strings.Join(within, ", "), strings.Join(beyond, ", "))
}

// Ladder computes a cell in every format, rounding as that format does after every single operation, and shows each stage.
func Ladder(c Cell) (Rungs, error) {
	if err := c.check("Ladder"); err != nil {
		return nil, err
	}
	if c.Scale == 0 {
		c.Scale = 1 / math.Sqrt(float64(len(c.Query)))
	}
	var out Rungs
	var truth []stage
	for _, f := range Formats() {
		stages := c.compute(f)
		if truth == nil {
			truth = stages
		}
		r := Rung{Format: f, Value: stages[len(stages)-1].values[0]}
		r.Error = math.Abs(r.Value - truth[len(truth)-1].values[0])
		for i, s := range stages {
			step := Step{Name: s.name, Value: s.values[s.shown]}
			for j, v := range s.values {
				if off := math.Abs(v - truth[i].values[j]); !(off <= step.Error) {
					step.Error = off
				}
			}
			r.Steps = append(r.Steps, step)
		}
		out = append(out, r)
	}
	return out, nil
}

func (c Cell) check(op string) error {
	if len(c.Query) == 0 || c.Keys == nil || c.Keys.IsEmpty() {
		return badShape(op, "needs a query and keys")
	}
	keys, dim := c.Keys.Dims()
	columns := keys
	if c.Values != nil {
		var rows int
		if rows, columns = c.Values.Dims(); rows != keys {
			return badShape(op, "%d keys and %d values", keys, rows)
		}
	}
	switch {
	case dim != len(c.Query):
		return badShape(op, "a query of %d and keys of %d elements", len(c.Query), dim)
	case c.Column < 0 || c.Column >= columns:
		return badArgument(op, "column %d of %d", c.Column, columns)
	case c.Bias != nil && len(c.Bias) != keys:
		return badShape(op, "a bias of %d for %d keys", len(c.Bias), keys)
	case !(c.Softcap >= 0) || math.IsInf(c.Softcap, 1):
		return badArgument(op, "softcap %v is not a number from 0 on", c.Softcap)
	case c.Visible != nil && !slices.ContainsFunc(counting(keys), c.Visible):
		return tooLittle(op, "the query sees no key; needs one")
	}
	if c.RoPE != nil {
		if err := c.RoPE.Validate(keys, dim); err != nil {
			return fmt.Errorf("detect: %s: %w", op, err)
		}
	}
	return nil
}

func counting(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// stage is what one step of the computation gives.
type stage struct {
	name   string
	values []float64
	shown  int // the element of most weight
}

// compute runs the cell in one format.
func (c Cell) compute(f Format) []stage {
	keys, dim := c.Keys.Dims()
	store := func(x []float64) []float64 {
		out := make([]float64, len(x))
		for i, v := range x {
			out[i] = f.Between.Round(v)
		}
		return out
	}
	q := store(c.Query)
	k := make([][]float64, keys)
	for key := range k {
		k[key] = store(c.Keys.RawRowView(key))
	}
	var out []stage
	if c.RoPE != nil {
		c.turn(f, q, c.QueryPosition)
		for key := range k {
			c.turn(f, k[key], c.RoPE.Position(key))
		}
		out = append(out, stage{"query after RoPE", q, 0})
	}
	dot := func(n int, a, b func(i int) float64) float64 {
		sum := 0.0
		for i := range n {
			sum = f.Sum.Round(sum + f.Sum.Round(f.Input.Round(a(i))*f.Input.Round(b(i))))
		}
		return sum
	}
	scores := make([]float64, keys)
	for key := range k {
		s := dot(dim, func(i int) float64 { return q[i] }, func(i int) float64 { return k[key][i] })
		scores[key] = f.Between.Round(f.Sum.Round(s * f.Sum.Round(c.Scale)))
	}
	if c.Values == nil {
		return append(out, stage{"score", []float64{scores[c.Column]}, 0})
	}
	out = append(out, stage{"scores", scores, c.most(scores)})
	if c.Softcap > 0 || c.Bias != nil || c.Slope != 0 {
		scores = c.change(f, scores)
		out = append(out, stage{"scores as changed", scores, c.most(scores)})
	}
	weights := c.softmax(f, scores)
	out = append(out, stage{"probabilities", weights, c.most(weights)})
	value := dot(keys, func(i int) float64 { return weights[i] }, func(i int) float64 { return f.Between.Round(c.Values.At(i, c.Column)) })
	return append(out, stage{"context", []float64{f.Between.Round(value)}, 0})
}

// most is the visible element that is largest.
func (c Cell) most(of []float64) int {
	most := -1
	for key, x := range of {
		if c.sees(key) && (most < 0 || x > of[most]) {
			most = key
		}
	}
	return most
}

// change gives scores their form before the softmax: softcap, bias, ALiBi.
func (c Cell) change(f Format, scores []float64) []float64 {
	out := make([]float64, len(scores))
	for key, s := range scores {
		if c.Softcap > 0 {
			bent := f.Sum.Round(math.Tanh(f.Sum.Round(s / f.Sum.Round(c.Softcap))))
			s = f.Sum.Round(f.Sum.Round(c.Softcap) * bent)
		}
		if c.Bias != nil {
			s = f.Sum.Round(s + f.Between.Round(c.Bias[key]))
		}
		if c.Slope != 0 {
			s = f.Sum.Round(s - f.Sum.Round(f.Sum.Round(c.Slope)*math.Abs(float64(key-c.Own))))
		}
		out[key] = f.Between.Round(s)
	}
	return out
}

// softmax is in the precision of sums, as in all of them, whatever is stored.
func (c Cell) softmax(f Format, scores []float64) []float64 {
	weights, total, most := make([]float64, len(scores)), 0.0, scores[c.most(scores)]
	if c.Sink != nil {
		sink := f.Between.Round(*c.Sink)
		most = max(most, sink)
		total = f.Sum.Round(math.Exp(f.Sum.Round(sink - most)))
	}
	for key, s := range scores {
		if c.sees(key) {
			weights[key] = f.Sum.Round(math.Exp(f.Sum.Round(s - most)))
			total = f.Sum.Round(total + weights[key])
		}
	}
	for key := range weights {
		weights[key] = f.Between.Round(f.Sum.Round(weights[key] / total))
	}
	return weights
}

func (c Cell) sees(key int) bool { return c.Visible == nil || c.Visible(key) }

// turn rotates a row in place.
func (c Cell) turn(f Format, x []float64, position int) {
	magnitude := c.RoPE.Magnitude
	if magnitude == 0 {
		magnitude = 1
	}
	for i := range c.RoPE.Rotary / 2 {
		a, b := c.RoPE.Pair(i)
		cos, sin := f.Angles.turn(position, c.RoPE.Frequency(i))
		cos, sin = f.Between.Round(cos*magnitude), f.Between.Round(sin*magnitude)
		xa, xb := x[a], x[b]
		x[a] = f.Between.Round(f.Sum.Round(f.Sum.Round(xa*cos) - f.Sum.Round(xb*sin)))
		x[b] = f.Between.Round(f.Sum.Round(f.Sum.Round(xa*sin) + f.Sum.Round(xb*cos)))
	}
}
