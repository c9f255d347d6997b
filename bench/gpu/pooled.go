//go:build cuda

package main

import (
	"math"

	"github.com/attnb/attnb/cudaops"
)

// picture is that of one long head: causal, pooled to a square of mean probabilities.
type picture struct{ length, side int }

const (
	pooledDim   = 128
	pooledCells = 1000 // that are compared with float64 here; the peer compares all with float64 on the GPU
	pooledRows  = 16   // rows of the picture that these lie in
)

// sample is cell n of those that are compared: random, in one of a few random rows of the picture, visible.
func (p picture) sample(n int) (row, col int) {
	row = int(mix(uint64(n%pooledRows)) % uint64(p.side))
	return row, int(mix(uint64(1000+n)) % uint64(row+1))
}

// pooledCase is the sums of exponentials of every row, and the view that they make possible.
func pooledCase(of picture) benchCase {
	n := float64(of.length)
	scale := 1 / math.Sqrt(pooledDim)
	mask := cudaops.Mask{Causal: true}
	return benchCase{
		row:   row{Op: "pooled", H: 1, KV: 1, D: pooledDim, S: of.length, T: of.length, Causal: true, Side: of.side},
		bytes: 4 * 2 * n * pooledDim, flops: 2 * 2 * pooledDim * n * (n + 1) / 2, inputs: 1e12, tensor: true, // one set
		prepare: func(m *meter, _ int) (*prepared, error) {
			p := &prepared{}
			q, qb, err := p.input(m, 1, 0, 1, of.length, pooledDim, "")
			if err != nil {
				return p, err
			}
			k, kb, err := p.input(m, 1, 1, 1, of.length, pooledDim, "")
			if err != nil {
				return p, err
			}
			op := func() (*cudaops.Buffer, error) {
				lse, err := m.d.LSE(qb[0], kb[0], scale, mask)
				if err != nil {
					return nil, err
				}
				defer lse.Release()
				return m.d.Pool(qb[0], kb[0], lse, cudaops.Pooling{Scale: scale, Mask: mask, Reduce: cudaops.Mean, Rows: of.side, Cols: of.side})
			}
			p.run = func(int) error { return drop(op()) }
			p.error = func() (float64, error) {
				m.b.LargestAllocation()
				out, err := op()
				if err != nil {
					return 0, err
				}
				p.peak = m.b.LargestAllocation()
				picture, err := m.d.Download(out)
				if err != nil {
					return 0, err
				}
				p.picture = picture
				want := of.truth(q, k, scale)
				got := make([]float32, pooledCells)
				for i := range got {
					row, col := of.sample(i)
					got[i] = picture[row*of.side+col]
					p.maxRel = math.Max(p.maxRel, math.Abs(float64(got[i])-want[i])/want[i])
				}
				return relL2(got, want), out.Release()
			}
			return p, nil
		},
	}
}

// truth is the cells of [picture.sample] in float64.
func (p picture) truth(q, k []float32, scale float64) []float64 {
	pool := p.length / p.side
	sums := make([]float64, pooledCells)
	cells := map[int][]int{} // of a row of the picture
	for n := range sums {
		row, _ := p.sample(n)
		cells[row] = append(cells[row], n)
	}
	for row, list := range cells {
		each := make([][]float64, pool) // a query each
		parallel(pool, func(from, to int) {
			for i := from; i < to; i++ {
				each[i] = p.row(q, k, scale, row*pool+i, list)
			}
		})
		for i, n := range list {
			_, col := p.sample(n)
			seen := 0
			for s := range pool {
				sums[n] += each[s][i]
				seen += min(max(row*pool+s+1-col*pool, 0), pool)
			}
			sums[n] /= float64(seen)
		}
	}
	return sums
}

// row is the sums of one query's probabilities over the pools of keys of some samples.
func (p picture) row(q, k []float32, scale float64, s int, samples []int) []float64 {
	pool := p.length / p.side
	x := widen(q[s*pooledDim:][:pooledDim])
	weights := make([]float64, s+1)
	for j := range weights {
		y := k[j*pooledDim:][:pooledDim]
		var a, b, c, d float64
		for i := 0; i < pooledDim; i += 4 {
			a += x[i] * float64(y[i])
			b += x[i+1] * float64(y[i+1])
			c += x[i+2] * float64(y[i+2])
			d += x[i+3] * float64(y[i+3])
		}
		weights[j] = scale * (a + b + (c + d))
	}
	softmax(weights, len(weights))
	sums := make([]float64, len(samples))
	for i, n := range samples {
		_, col := p.sample(n)
		for j := col * pool; j < min(col*pool+pool, len(weights)); j++ {
			sums[i] += weights[j]
		}
	}
	return sums
}
