package optest

import (
	"fmt"
	"math"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/reference"
	"github.com/attnb/attnb/reference/bound"
	"gonum.org/v1/gonum/mat"
)

func lseCase(name string, q, k tensor, scale float64, m cudaops.Mask) testCase {
	return testCase{
		name: name,
		in:   []tensor{q, k},
		do: func(d *cudaops.Device, in []*cudaops.Buffer) ([]*cudaops.Buffer, error) {
			return one(d.LSE(in[0], in[1], scale, m))
		},
		want: func(in []bound.Heads) ([]bound.Heads, error) {
			s, err := bound.Scores(in[0], in[1], scale)
			if err != nil {
				return nil, err
			}
			return truth(bound.LSE(s, visible(m)))
		},
	}
}

// window is what a pooled view shows of the matrix: rows and columns from up to but without to. The zero value: all.
type window struct{ fromRow, toRow, fromCol, toCol int }

func (w window) of(s, t int) window {
	if w == (window{}) {
		return window{0, s, 0, t}
	}
	return w
}

// poolCase pools scores or probabilities of a window. The window is made of views, and of the log of the sums of all rows.
func poolCase(name string, q, k tensor, p cudaops.Pooling, probabilities bool, w window) testCase {
	w = w.of(q.s, k.s)
	inside := p.Mask
	if inside.Causal {
		inside.Diagonal += w.fromRow - w.fromCol
	}
	return testCase{
		name: name,
		in:   []tensor{q, k},
		do: func(d *cudaops.Device, in []*cudaops.Buffer) (made []*cudaops.Buffer, err error) {
			var views []*cudaops.Buffer
			view := func(f func() (*cudaops.Buffer, error)) (b *cudaops.Buffer) {
				if err == nil {
					if b, err = f(); err == nil {
						views = append(views, b)
					}
				}
				return b
			}
			var lse, result *cudaops.Buffer
			if probabilities {
				whole := view(func() (*cudaops.Buffer, error) { return d.LSE(in[0], in[1], p.Scale, p.Mask) })
				lse = view(func() (*cudaops.Buffer, error) { return whole.Columns(w.fromRow, w.toRow) })
			}
			rows := view(func() (*cudaops.Buffer, error) { return in[0].Rows(w.fromRow, w.toRow) })
			keys := view(func() (*cudaops.Buffer, error) { return in[1].Rows(w.fromCol, w.toCol) })
			if err == nil {
				seen := p
				seen.Mask = inside
				result, err = d.Pool(rows, keys, lse, seen)
			}
			return finish(result, err, views...)
		},
		want: func(in []bound.Heads) ([]bound.Heads, error) {
			x, err := bound.Scores(in[0], in[1], p.Scale)
			if err == nil && probabilities {
				var lse bound.Heads
				if lse, err = bound.LSE(x, visible(p.Mask)); err == nil {
					x, err = bound.Weights(x, lse, visible(p.Mask))
				}
			}
			if err != nil {
				return nil, err
			}
			return truth(bound.Pool(w.cut(x), visible(inside), reference.Reduction(p.Reduce), p.Rows, p.Cols))
		},
	}
}

// cut is the window of every matrix.
func (w window) cut(x bound.Heads) bound.Heads {
	cut := func(all reference.Heads) reference.Heads {
		out := make(reference.Heads, len(all))
		for h, m := range all {
			out[h] = mat.DenseCopyOf(m.Slice(w.fromRow, w.toRow, w.fromCol, w.toCol))
		}
		return out
	}
	return bound.Heads{Value: cut(x.Value), Err: cut(x.Err)}
}

var reductions = []struct {
	name string
	by   cudaops.Reduce
}{{"max", cudaops.Max}, {"mean", cudaops.Mean}, {"sum", cudaops.Sum}, {"min", cudaops.Min}}

func poolCases() []testCase {
	var all []testCase
	add := func(n dims, m cudaops.Mask, rows, cols int, w window, amplitude float64) {
		base := fmt.Sprintf("pool/%v %s to %dx%d window %v amplitude%v", n, maskName(m), rows, cols, w, amplitude)
		q, k, _ := n.random(base, amplitude)
		for _, r := range reductions {
			for _, probabilities := range []bool{false, true} {
				name := base + " " + r.name + " of scores"
				if probabilities {
					name = base + " " + r.name + " of probabilities"
				}
				p := cudaops.Pooling{Scale: n.scale(), Mask: m, Reduce: r.by, Rows: rows, Cols: cols}
				all = append(all, poolCase(name, q, k, p, probabilities, w))
			}
		}
	}
	causal := func(diagonal int) cudaops.Mask { return cudaops.Mask{Causal: true, Diagonal: diagonal} }
	everything := window{}
	add(dims{1, 1, 1, 1, 1}, cudaops.Mask{}, 1, 1, everything, 1)
	add(dims{4, 2, 5, 9, 8}, causal(4), 5, 9, everything, 1)          // nothing to pool
	add(dims{4, 2, 5, 9, 8}, causal(-2), 2, 4, everything, 1)         // top-left, empty rows
	add(dims{2, 1, 6, 6, 3}, causal(-6), 3, 3, everything, 1)         // all rows empty
	add(dims{6, 2, 7, 11, 5}, cudaops.Mask{}, 7, 3, everything, 1)    // no pooling of rows
	add(dims{6, 2, 9, 5, 7}, causal(-4), 4, 5, everything, 1)         // more queries than keys
	add(dims{2, 1, 257, 257, 16}, causal(0), 64, 64, everything, 1)   // pools of 4 and 5
	add(dims{2, 1, 37, 257, 16}, causal(220), 5, 64, everything, 1)   // queries behind a cache
	add(dims{1, 1, 130, 300, 24}, causal(170), 1, 1, everything, 1)   // all in one cell
	add(dims{1, 1, 200, 130, 9}, cudaops.Mask{}, 3, 2, everything, 1) // pools of more than a block of rows and of keys
	add(dims{2, 2, 65, 129, 64}, causal(64), 13, 127, everything, 4)  // peaked rows
	add(dims{1, 1, 33, 70, 128}, causal(37), 8, 8, everything, 30)    // one-hot rows
	add(dims{2, 1, 150, 700, 64}, causal(550), 2, 3, everything, 1)   // pools wider than a tile of keys
	add(dims{1, 1, 70, 300, 128}, causal(230), 70, 5, everything, 1)  // rows by themselves, pools of 60 keys
	add(dims{2, 2, 90, 150, 72}, causal(61), 7, 40, everything, 1)    // a diagonal that is not the last key's
	add(dims{4, 2, 9, 11, 8}, causal(2), 3, 2, window{3, 8, 2, 7}, 1)
	add(dims{2, 1, 257, 257, 8}, causal(0), 16, 16, window{129, 193, 64, 200}, 1) // over the diagonal
	add(dims{2, 1, 257, 257, 8}, causal(0), 8, 8, window{100, 108, 97, 105}, 1)   // unpooled
	add(dims{2, 1, 257, 257, 8}, causal(0), 1, 1, window{256, 257, 256, 257}, 1)  // the last cell
	add(dims{2, 1, 257, 257, 8}, causal(0), 1, 1, window{255, 256, 256, 257}, 1)  // a hidden cell
	add(dims{3, 3, 1, 513, 12}, cudaops.Mask{}, 1, 100, everything, 1)            // a decode step

	n := dims{4, 2, 5, 9, 8}
	q, k, _ := n.random("pool", 1)
	p := cudaops.Pooling{Scale: -3, Mask: causal(4), Reduce: cudaops.Max, Rows: 2, Cols: 4}
	all = append(all, poolCase("pool/negative scale", q, k, p, true, everything))
	return append(all, strangePoolCases()...)
}

func lseCases() []testCase {
	var all []testCase
	causal := func(diagonal int) cudaops.Mask { return cudaops.Mask{Causal: true, Diagonal: diagonal} }
	n := dims{4, 2, 5, 9, 8}
	q, k, _ := n.random("lse", 1)
	for _, m := range []cudaops.Mask{{}, causal(0), causal(4), causal(-3), causal(-9)} {
		all = append(all, lseCase("lse/"+n.String()+" "+maskName(m), q, k, n.scale(), m))
	}
	for _, n := range []dims{{1, 1, 1, 1, 1}, {6, 3, 3, 257, 7}, {2, 1, 33, 65, 16}, {3, 1, 130, 200, 32}, {1, 1, 2, 1025, 64}} {
		q, k, _ := n.random("lse", 3)
		all = append(all, lseCase("lse/"+n.String(), q, k, n.scale(), causal(n.t-n.s)))
	}
	for _, bad := range strange {
		for _, n := range []dims{{4, 2, 6, 9, 8}, {2, 1, 40, 150, 16}} {
			for _, from := range []int{n.t - 2, n.t - 4} {
				if k, seen := n.strangeKeys("lse", bad, from); !seen || bad != math.MaxFloat32 {
					q, _, _ := n.random("lse of odd keys", 1)
					name := fmt.Sprintf("lse/%v keys %v from %d", n, bad, from)
					all = append(all, lseCase(name, q, k, n.scale(), causal(n.t-2-n.s)))
				}
			}
		}
	}
	return all
}

// strangeKeys are keys that from one on are bad. Where the diagonal is t-2-s the last two are seen by no query.
func (n dims) strangeKeys(name string, bad float32, from int) (k tensor, seen bool) {
	_, k, _ = n.random(name, 1)
	for h := range k.h {
		for t := from; t < n.t; t++ {
			*k.at(h, t, (h+t)%n.d) = bad
		}
	}
	return k, from < n.t-2
}

// strangePoolCases have keys that must stay hidden, and show where they are seen.
func strangePoolCases() []testCase {
	var all []testCase
	for _, bad := range strange {
		for _, n := range []dims{{4, 2, 6, 9, 8}, {2, 1, 40, 150, 16}} {
			for _, from := range []int{n.t - 2, n.t - 4} {
				base := fmt.Sprintf("pool/%v keys %v from %d", n, bad, from)
				k, seen := n.strangeKeys(base, bad, from)
				if seen && bad == math.MaxFloat32 {
					continue // an overflowing score: f32 and f64 rightly differ
				}
				q, _, _ := n.random(base, 1)
				m := cudaops.Mask{Causal: true, Diagonal: n.t - 2 - n.s}
				for _, r := range reductions {
					p := cudaops.Pooling{Scale: n.scale(), Mask: m, Reduce: r.by, Rows: n.s - 1, Cols: n.t / 2}
					all = append(all, poolCase(base+" "+r.name+" of scores", q, k, p, false, window{}),
						poolCase(base+" "+r.name+" of probabilities", q, k, p, true, window{}))
				}
			}
		}
	}
	return all
}
