package detect

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/attnb/attnb/reference"
	"gonum.org/v1/gonum/mat"
)

// Check is an invariant and how well it holds: a law that needs no reference.
type Check struct {
	Name  string
	Worst float64 // largest departure
	Floor float64 // what rounding explains of that, at that place
	Where string
	Pass  bool // Worst <= Floor everywhere
	// Ratios are, for each head and row, the largest departure in proportion to its floor; +Inf where that is NaN, or more than a floor of 0.
	Ratios [][]float64
}

func (c Check) String() string {
	verdict := "holds"
	if !c.Pass {
		verdict = "BROKEN"
	}
	return fmt.Sprintf("%s: %s; off by %.2g at %s (rounding: %.2g)", c.Name, verdict, c.Worst, c.Where, c.Floor)
}

// law collects departures; it keeps the one that exceeds its floor the most.
type law struct {
	Check
	ratio float64
}

func newLaw(name string, heads, rows int) *law {
	l := &law{Check: Check{Name: name, Where: "no place", Pass: true, Ratios: make([][]float64, heads)}, ratio: -1}
	for h := range l.Ratios {
		l.Ratios[h] = make([]float64, rows)
	}
	return l
}

// at takes a departure at a row, or within it at a place that words say.
func (l *law) at(head, row int, off, floor float64, words string, args ...any) {
	ratio := off / floor
	switch {
	case off == 0:
		ratio = 0
	case math.IsNaN(ratio):
		ratio = math.Inf(1)
	}
	l.Pass = l.Pass && off <= floor
	l.Ratios[head][row] = max(l.Ratios[head][row], ratio)
	if ratio > l.ratio {
		l.ratio, l.Worst, l.Floor = ratio, off, floor
		l.Where = fmt.Sprintf("head %d row %d"+words, append([]any{head, row}, args...)...)
	}
}

// NormsKept: RoPE turns, so it keeps the length of each row's first rotary elements, times the magnitude of its cosines (0 means
// 1), and changes no other. Floor: 8 roundings of the length.
func NormsKept(before, after reference.Heads, rotary int, magnitude float64, p Precision) (Check, error) {
	const op = "NormsKept"
	s, err := same(op, "before", before, "after", after)
	if err != nil {
		return Check{}, err
	}
	if rotary < 2 || rotary > s.dim {
		return Check{}, badArgument(op, "rotary %d is not from 2 to the head dim %d", rotary, s.dim)
	}
	if magnitude == 0 {
		magnitude = 1
	}
	l := newLaw("norms are kept by RoPE", s.heads, s.rows)
	for h := range before {
		for row := range s.rows {
			x, y := before[h].RawRowView(row), after[h].RawRowView(row)
			want := magnitude * mat.Norm(mat.NewVecDense(rotary, x[:rotary:rotary]), 2)
			got := mat.Norm(mat.NewVecDense(rotary, y[:rotary:rotary]), 2)
			l.at(h, row, math.Abs(got-want), slack*p.Unit()*want, "")
			for i := rotary; i < s.dim; i++ {
				l.at(h, row, math.Abs(y[i]-x[i]), p.Unit()*math.Abs(x[i]), " dim %d", i)
			}
		}
	}
	return l.Check, nil
}

// RelativeOnly: after RoPE, q.k depends on the distance of the two rows and on nothing else, so moving both by as much keeps every
// score. rotate turns rows whose first is at the offset. Floor: 8 roundings of sum |q||k|; angles computed in f32 break it far
// from 0, and that is what it is for.
func RelativeOnly(rotate func(x reference.Heads, offset int) (reference.Heads, error), q, k reference.Heads, offsets []int, p Precision) (Check, error) {
	const op = "RelativeOnly"
	qs, err := measure(op, "q", q)
	if err != nil {
		return Check{}, err
	}
	if len(offsets) < 2 {
		return Check{}, tooLittle(op, "needs at least two offsets")
	}
	perKV := qs.heads / max(1, len(k)) // Scores refuses what does not divide
	l := newLaw("scores depend on distance only", qs.heads, qs.rows)
	var first reference.Heads
	for _, offset := range offsets {
		turnedQ, err := rotate(q, offset)
		if err != nil {
			return Check{}, fmt.Errorf("detect: %s: %w", op, err)
		}
		turnedK, err := rotate(k, offset)
		if err != nil {
			return Check{}, fmt.Errorf("detect: %s: %w", op, err)
		}
		s, err := reference.Scores(turnedQ, turnedK, 1)
		if err != nil {
			return Check{}, fmt.Errorf("detect: %s: %w", op, err)
		}
		if first == nil {
			first = s
			continue
		}
		for h := range s {
			rows, keys := s[h].Dims()
			for row := range rows {
				for col := range keys {
					size := mat.Norm(turnedQ[h].RowView(row), 2) * mat.Norm(turnedK[h/perKV].RowView(col), 2)
					l.at(h, row, math.Abs(s[h].At(row, col)-first[h].At(row, col)), slack*p.Unit()*size,
						" key %d, offsets %d and %d", col, offsets[0], offset)
				}
			}
		}
	}
	return l.Check, nil
}

// RowsSum: a row of probabilities sums to 1, to less with a sink (what it leaves), to 0 where it sees nothing. Floor: one rounding a
// key and 8 more.
func RowsSum(p reference.Heads, sink bool, precision Precision) (Check, error) {
	s, err := measure("RowsSum", "probabilities", p)
	if err != nil {
		return Check{}, err
	}
	l := newLaw("rows sum to 1", s.heads, s.rows)
	if sink {
		l.Name = "rows sum to at most 1"
	}
	for h := range p {
		for row := range s.rows {
			sum, least := 0.0, 0.0
			for _, v := range p[h].RawRowView(row) {
				sum, least = sum+v, min(least, v)
			}
			off := math.Abs(sum - 1)
			if sum == 0 || sink && sum < 1 {
				off = 0
			}
			l.at(h, row, max(off, -least), float64(s.dim+8)*precision.Unit(), "")
		}
	}
	return l.Check, nil
}

// NoFuture: a row has no weight on columns behind row+diagonal. Floor: 0.
func NoFuture(p reference.Heads, diagonal int) (Check, error) {
	s, err := measure("NoFuture", "probabilities", p)
	if err != nil {
		return Check{}, err
	}
	l := newLaw("no weight on the future", s.heads, s.rows)
	for h := range p {
		for row := range s.rows {
			for col := range s.dim {
				if col > row+diagonal {
					l.at(h, row, math.Abs(p[h].At(row, col)), 0, " key %d", col)
				}
			}
		}
	}
	return l.Check, nil
}

// FutureUnseen: changing keys and values behind row+diagonal changes nothing in the row, not one bit, even to NaN.
func FutureUnseen(f Attention, q, k, v reference.Heads, diagonal int) (Check, error) {
	const op = "FutureUnseen"
	qs, ks, err := threeOf(op, q, k, v)
	if err != nil {
		return Check{}, err
	}
	before, err := answered(op, f, q, k, v)
	if err != nil {
		return Check{}, err
	}
	l := newLaw("a changed future key changes nothing", qs.heads, qs.rows)
	for _, wild := range []float64{1e4, math.NaN()} {
		for _, row := range []int{0, qs.rows / 2, qs.rows - 1} {
			if row+diagonal+1 >= ks.rows {
				continue
			}
			k2, v2 := copied(k), copied(v)
			for h := range k2 {
				for col := max(0, row+diagonal+1); col < ks.rows; col++ {
					for i := range ks.dim {
						k2[h].Set(col, i, wild)
						v2[h].Set(col, i, wild)
					}
				}
			}
			after, err := answered(op, f, q, k2, v2)
			if err != nil {
				return Check{}, err
			}
			for h := range after {
				for seen := 0; seen <= row; seen++ {
					for i := range qs.dim {
						off := math.Abs(after[h].At(seen, i) - before[h].At(seen, i))
						l.at(h, seen, off, 0, " dim %d, keys from %d set to %v", i, max(0, row+diagonal+1), wild)
					}
				}
			}
		}
	}
	if l.ratio < 0 {
		return Check{}, tooLittle(op, "no row has a key behind it; needs rows and keys with T > 1+diagonal")
	}
	return l.Check, nil
}

// HeadsPermute: heads do not know of one another: heads in another order, KV groups kept together, give the same results in that
// order. Floor: that of two computations of a row.
func HeadsPermute(f Attention, q, k, v reference.Heads, scale float64, p Precision) (Check, error) {
	const op = "HeadsPermute"
	qs, ks, err := threeOf(op, q, k, v)
	if err != nil {
		return Check{}, err
	}
	if ks.heads < 2 {
		return Check{}, tooLittle(op, "one KV head has no other order; needs at least two")
	}
	order := rand.New(rand.NewPCG(1, uint64(ks.heads))).Perm(ks.heads)
	order[0], order[1] = order[1], order[0]
	if order[0] == 0 { // never the order that it was
		order = append(order[1:], order[0])
	}
	group := qs.heads / ks.heads
	q2, k2, v2 := make(reference.Heads, qs.heads), make(reference.Heads, ks.heads), make(reference.Heads, ks.heads)
	for g, from := range order {
		k2[g], v2[g] = k[from], v[from]
		copy(q2[g*group:(g+1)*group], q[from*group:(from+1)*group])
	}
	before, err := answered(op, f, q, k, v)
	if err != nil {
		return Check{}, err
	}
	after, err := answered(op, f, q2, k2, v2)
	if err != nil {
		return Check{}, err
	}
	floors := rowFloors(q, k, v, scale, p)
	l := newLaw("permuted heads give permuted results", qs.heads, qs.rows)
	for g, from := range order {
		for j := range group {
			a, b := before[from*group+j], after[g*group+j]
			for row := range qs.rows {
				for i := range qs.dim {
					l.at(from*group+j, row, math.Abs(a.At(row, i)-b.At(row, i)), floors[from*group+j][row], " dim %d", i)
				}
			}
		}
	}
	return l.Check, nil
}

// PrefillIsDecode: rows computed all at once, in chunks and one by one behind a cache are the same rows. f must be causal, aligned
// bottom-right; q and k come rotated. Floor: that of two computations of a row, which sum in different orders.
func PrefillIsDecode(f Attention, q, k, v reference.Heads, chunks []int, scale float64, p Precision) (Check, error) {
	const op = "PrefillIsDecode"
	qs, ks, err := threeOf(op, q, k, v)
	if err != nil {
		return Check{}, err
	}
	if qs.rows > ks.rows || qs.rows < 2 {
		return Check{}, tooLittle(op, "%d rows and %d keys; needs at least two rows, and a key for each", qs.rows, ks.rows)
	}
	whole, err := answered(op, f, q, k, v)
	if err != nil {
		return Check{}, err
	}
	floors := rowFloors(q, k, v, scale, p)
	past := ks.rows - qs.rows
	l := newLaw("decode = prefill = prefill in chunks", qs.heads, qs.rows)
	for _, chunk := range append([]int{1}, chunks...) {
		if chunk < 1 {
			return Check{}, badArgument(op, "a chunk of %d rows", chunk)
		}
		for from := 0; from < qs.rows; from += chunk {
			to := min(from+chunk, qs.rows)
			part, err := answered(op, f, slice(q, from, to), slice(k, 0, past+to), slice(v, 0, past+to))
			if err != nil {
				return Check{}, err
			}
			for h := range part {
				for row := from; row < to; row++ {
					for i := range qs.dim {
						l.at(h, row, math.Abs(part[h].At(row-from, i)-whole[h].At(row, i)), floors[h][row], " dim %d, chunks of %d", i, chunk)
					}
				}
			}
		}
	}
	return l.Check, nil
}

// rowFloors is how far apart two correct computations of a row of attention can be expected, as four times what independent
// roundings come to: what is stored (turned rows, scores, weights, results) rounds in the data's precision, sums in f32 at least. A
// score of a weighted value moves the result by at most itself times the largest value.
func rowFloors(q, k, v reference.Heads, scale float64, p Precision) [][]float64 {
	_, dim := q[0].Dims()
	keys, _ := k[0].Dims()
	if scale == 0 {
		scale = 1 / math.Sqrt(float64(dim))
	}
	unit, sums := p.Unit(), min(p.Unit(), Float32.Unit())
	most := largest(v)
	out := make([][]float64, len(q))
	for h := range q {
		rows, _ := q[h].Dims()
		out[h] = make([]float64, rows)
		for row := range rows {
			var size, terms, score float64 // largest over the keys: sum |q k|, root of the sum of (q k)^2, |q.k|
			for col := range keys {
				var sum, square, dot float64
				for i, x := range k[h/(len(q)/len(k))].RawRowView(col) {
					t := x * q[h].At(row, i)
					sum, square, dot = sum+math.Abs(t), square+t*t, dot+t
				}
				size, terms, score = max(size, sum), max(terms, math.Sqrt(square)), max(score, math.Abs(dot))
			}
			stored := unit * (math.Abs(scale)*2*(terms+score) + 4)
			summed := sums * (math.Sqrt(float64(dim))*math.Abs(scale)*size + math.Sqrt(float64(keys)) + 8)
			out[h][row] = 4 * most * (stored + summed)
		}
	}
	return out
}

// threeOf measures q, k and v of an attention.
func threeOf(op string, q, k, v reference.Heads) (qs, ks shape, err error) {
	if qs, err = measure(op, "q", q); err != nil {
		return
	}
	if ks, err = same(op, "k", k, "v", v); err != nil {
		return
	}
	if qs.dim != ks.dim || qs.heads%ks.heads != 0 {
		err = badShape(op, "q %v and k %v do not fit together", qs, ks)
	}
	return
}

// answered calls the function under test and measures what it gives.
func answered(op string, f Attention, q, k, v reference.Heads) (reference.Heads, error) {
	out, err := f(q, k, v)
	if err != nil {
		return nil, fmt.Errorf("detect: %s: %w", op, err)
	}
	_, err = same(op, "the result", out, "q", q)
	return out, err
}

func copied(x reference.Heads) reference.Heads {
	out := make(reference.Heads, len(x))
	for h, m := range x {
		out[h] = mat.DenseCopyOf(m)
	}
	return out
}

// slice are rows from..to of every head.
func slice(x reference.Heads, from, to int) reference.Heads {
	out := make(reference.Heads, len(x))
	for h, m := range x {
		_, dim := m.Dims()
		out[h] = mat.DenseCopyOf(m.Slice(from, to, 0, dim))
	}
	return out
}
