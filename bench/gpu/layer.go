//go:build cuda

package main

import (
	"errors"
	"math"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/cudaops/plan"
)

// One layer of attention: hidden states to Q, K and V, heads, RoPE, attention, heads merged, the output's weights, and the residual.
const hidden = heads * headDim

var (
	layerRoPE  = cudaops.RoPE{Rotary: headDim, Base: 10000}
	layerScale = 1 / math.Sqrt(headDim)
)

// held are buffers that are released together.
type heldBuffers []*cudaops.Buffer

func (h *heldBuffers) keep(b *cudaops.Buffer, err error) (*cudaops.Buffer, error) {
	if err == nil {
		*h = append(*h, b)
	}
	return b, err
}

func (h heldBuffers) release() (err error) {
	for _, b := range h {
		err = errors.Join(err, b.Release())
	}
	return err
}

// layer is the whole of it. With caches k and v the rows of x stand behind them, and the caches that follow take their place.
func layer(d *cudaops.Device, x, qkv, out *cudaops.Buffer, offset int, caches *[2]*cudaops.Buffer) (y *cudaops.Buffer, err error) {
	var h heldBuffers
	defer func() { err = errors.Join(err, h.release()) }()
	rows, err := h.keep(d.Linear(x, qkv, nil))
	if err != nil {
		return nil, err
	}
	q, k, v, err := d.SplitHeads(rows, plan.GPT2, heads, heads, headDim)
	if err != nil {
		return nil, err
	}
	h = append(h, q, k, v)
	turn := layerRoPE
	turn.Offset = offset
	if q, err = h.keep(d.RoPE(q, turn)); err != nil {
		return nil, err
	}
	if k, err = h.keep(d.RoPE(k, turn)); err != nil {
		return nil, err
	}
	var context *cudaops.Buffer
	if caches == nil {
		var r cudaops.AttentionResult
		r, err = d.Prefill(q, k, v, cudaops.Attention{Scale: layerScale, Mask: cudaops.Mask{Causal: true}})
		context = r.Context
	} else {
		for i, rows := range []*cudaops.Buffer{k, v} {
			next, err := d.AppendKV(caches[i], rows)
			if err != nil {
				return nil, err
			}
			h = append(h, caches[i])
			caches[i] = next
		}
		context, err = d.Decode(q, caches[0], caches[1], layerScale)
	}
	if _, err = h.keep(context, err); err != nil {
		return nil, err
	}
	merged, err := h.keep(d.MergeHeads(context))
	if err != nil {
		return nil, err
	}
	projected, err := h.keep(d.Linear(merged, out, nil))
	if err != nil {
		return nil, err
	}
	return d.Add(x, projected)
}

// layerTruth is a row of the layer's result: the row of x at a position, keys and values before it, and its own.
func layerTruth(x, qkv, out []float32, position int, k, v [][]float64) []float64 {
	row := times(widen(x), qkv, 3*hidden)
	context := make([]float64, hidden)
	parallel(heads, func(from, to int) {
		for h := from; h < to; h++ {
			part := func(i int) []float64 { return row[i*hidden+h*headDim:][:headDim] }
			q := turnedWide(part(0), position)
			keys, values := append(heads128(k, h), turnedWide(part(1), position)), append(heads128(v, h), part(2))
			copy(context[h*headDim:], attentionWide(q, keys, values, layerScale))
		}
	})
	y := times(context, out, hidden)
	for i := range y {
		y[i] += float64(x[i])
	}
	return y
}

// heads128 is one head's part of rows.
func heads128(rows [][]float64, h int) [][]float64 {
	part := make([][]float64, len(rows), len(rows)+1)
	for i, r := range rows {
		part[i] = r[h*headDim:][:headDim]
	}
	return part
}

const (
	layerRows    = 4096
	layerSampled = 256 // rows among which those lie that are compared: a truth takes all rows before its own
	stepKeys     = 8192
)

func layerFlops(rows, keys float64) float64 {
	return 2*rows*hidden*4*hidden + 4*heads*headDim*keys
}

// layerCase is many rows, as a prompt is.
func layerCase() benchCase {
	const s = layerRows
	return benchCase{
		row:   row{Op: "layer", H: heads, D: headDim, S: s, T: s},
		bytes: 4 * 4 * hidden * (hidden + s), flops: layerFlops(s, s*(s+1)/2), inputs: 1e12, // one set
		prepare: func(m *meter, _ int) (*prepared, error) {
			p := &prepared{}
			x, qkv, out, bufs, err := p.layerInputs(m, s)
			if err != nil {
				return p, err
			}
			op := func() (*cudaops.Buffer, error) { return layer(m.d, bufs[0], bufs[1], bufs[2], 0, nil) }
			p.run = func(int) error { return drop(op()) }
			p.error = func() (float64, error) {
				y, err := op()
				if err != nil {
					return 0, err
				}
				k, v := make([][]float64, layerSampled), make([][]float64, layerSampled)
				parallel(layerSampled, func(from, to int) {
					for i := from; i < to; i++ {
						row := times(widen(x[i*hidden:][:hidden]), qkv[hidden*hidden:], 2*hidden)
						k[i], v[i] = row[:hidden], row[hidden:]
						for h := range heads {
							copy(k[i][h*headDim:], turnedWide(k[i][h*headDim:][:headDim], i))
						}
					}
				})
				var pairs [][2]int
				var want []float64
				for r := layerSampled - 1; r > 0; r -= 32 {
					pairs = append(pairs, [2]int{0, r})
					want = append(want, layerTruth(x[r*hidden:][:hidden], qkv, out, r, k[:r], v[:r])...)
				}
				got, err := rows(m, y, pairs)
				return relL2(got, want), err
			}
			return p, nil
		},
	}
}

// stepCase is one row behind a cache.
func stepCase() benchCase {
	const t = stepKeys
	return benchCase{
		row:   row{Op: "step", H: heads, D: headDim, S: 1, T: t},
		bytes: 4 * (4*hidden*hidden + 2*t*hidden), flops: layerFlops(1, t), inputs: 1e12,
		prepare: func(m *meter, _ int) (*prepared, error) {
			p := &prepared{}
			x, qkv, out, bufs, err := p.layerInputs(m, 1)
			if err != nil {
				return p, err
			}
			hk, k, err := p.input(m, 1, 3, heads, t, headDim, "")
			if err != nil {
				return p, err
			}
			hv, v, err := p.input(m, 1, 4, heads, t, headDim, "")
			if err != nil {
				return p, err
			}
			var caches [2]*cudaops.Buffer
			for i, b := range []*cudaops.Buffer{k[0], v[0]} {
				if caches[i], err = m.d.AppendKV(nil, b); err != nil {
					return p, err
				}
			}
			length := t
			op := func() (*cudaops.Buffer, error) {
				length++
				return layer(m.d, bufs[0], bufs[1], bufs[2], length-1, &caches)
			}
			p.run, p.mostRuns = func(int) error { return drop(op()) }, 20 // the cache grows by 4% in all
			p.error = func() (float64, error) {
				y, err := op()
				if err != nil {
					return 0, err
				}
				keys, values := make([][]float64, t), make([][]float64, t)
				for i := range t {
					for h := range heads {
						keys[i] = append(keys[i], widen(hk[(h*t+i)*headDim:][:headDim])...)
						values[i] = append(values[i], widen(hv[(h*t+i)*headDim:][:headDim])...)
					}
				}
				got, err := rows(m, y, [][2]int{{0, 0}})
				return relL2(got, layerTruth(x, qkv, out, t, keys, values)), err
			}
			return p, nil
		},
	}
}

// layerInputs are s hidden states and the weights, which keep queries and keys near 1.
func (p *prepared) layerInputs(m *meter, s int) (x, qkv, out []float32, bufs [3]*cudaops.Buffer, err error) {
	var b []*cudaops.Buffer
	if x, b, err = p.input(m, 1, 0, 1, s, hidden, ""); err != nil {
		return
	}
	bufs[0] = b[0]
	if qkv, b, err = p.input(m, 1, 1, 1, 3*hidden, hidden, "weights"); err != nil {
		return
	}
	bufs[1] = b[0]
	if out, b, err = p.input(m, 1, 2, 1, hidden, hidden, "weights"); err != nil {
		return
	}
	bufs[2] = b[0]
	return
}
