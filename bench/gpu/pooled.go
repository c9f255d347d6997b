//go:build cuda

package main

import (
	"math"

	"github.com/attnb/attnb/cudaops"
)

// The picture of one long head: causal, pooled to a square of mean probabilities.
const (
	pooledLength = 131072
	pooledSide   = 512
	pooledDim    = 128
	pooledCells  = 1000 // that are compared with float64 here; the peer compares all with float64 on the GPU
	pooledRows   = 16   // rows of the picture that these lie in
)

// pooledSample is cell n of those that are compared: random, in one of a few random rows of the picture, visible.
func pooledSample(n int) (row, col int) {
	row = int(mix(uint64(n%pooledRows)) % pooledSide)
	return row, int(mix(uint64(1000+n)) % uint64(row+1))
}

// pooledCase is the sums of exponentials of every row, and the view that they make possible.
func pooledCase() benchCase {
	const n = float64(pooledLength)
	scale := 1 / math.Sqrt(pooledDim)
	mask := cudaops.Mask{Causal: true}
	return benchCase{
		row:   row{Op: "pooled", H: 1, KV: 1, D: pooledDim, S: pooledLength, T: pooledLength, Causal: true},
		bytes: 4 * 2 * n * pooledDim, flops: 2 * 2 * pooledDim * n * (n + 1) / 2, inputs: 1e12, // one set
		prepare: func(m *meter, _ int) (*prepared, error) {
			p := &prepared{}
			q, qb, err := p.input(m, 1, 0, 1, pooledLength, pooledDim, "")
			if err != nil {
				return p, err
			}
			k, kb, err := p.input(m, 1, 1, 1, pooledLength, pooledDim, "")
			if err != nil {
				return p, err
			}
			op := func() (*cudaops.Buffer, error) {
				lse, err := m.d.LSE(qb[0], kb[0], scale, mask)
				if err != nil {
					return nil, err
				}
				defer lse.Release()
				return m.d.Pool(qb[0], kb[0], lse, cudaops.Pooling{Scale: scale, Mask: mask, Reduce: cudaops.Mean, Rows: pooledSide, Cols: pooledSide})
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
				want := pooledTruth(q, k, scale)
				got := make([]float32, pooledCells)
				for i := range got {
					row, col := pooledSample(i)
					got[i] = picture[row*pooledSide+col]
					p.maxRel = math.Max(p.maxRel, math.Abs(float64(got[i])-want[i])/want[i])
				}
				return relL2(got, want), out.Release()
			}
			return p, nil
		},
	}
}

// pooledTruth is the cells of [pooledSample] in float64.
func pooledTruth(q, k []float32, scale float64) []float64 {
	const pool = pooledLength / pooledSide
	sums := make([]float64, pooledCells)
	cells := map[int][]int{} // of a row of the picture
	for n := range sums {
		row, _ := pooledSample(n)
		cells[row] = append(cells[row], n)
	}
	for row, list := range cells {
		each := make([][]float64, pool) // a query each
		parallel(pool, func(from, to int) {
			for i := from; i < to; i++ {
				each[i] = pooledRow(q, k, scale, row*pool+i, list)
			}
		})
		for i, n := range list {
			_, col := pooledSample(n)
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

// pooledRow is the sums of one query's probabilities over the pools of keys of some samples.
func pooledRow(q, k []float32, scale float64, s int, samples []int) []float64 {
	const pool = pooledLength / pooledSide
	x := widen(q[s*pooledDim:][:pooledDim])
	p := make([]float64, s+1)
	for j := range p {
		y := k[j*pooledDim:][:pooledDim]
		var a, b, c, d float64
		for i := 0; i < pooledDim; i += 4 {
			a += x[i] * float64(y[i])
			b += x[i+1] * float64(y[i+1])
			c += x[i+2] * float64(y[i+2])
			d += x[i+3] * float64(y[i+3])
		}
		p[j] = scale * (a + b + (c + d))
	}
	softmax(p, len(p))
	sums := make([]float64, len(samples))
	for i, n := range samples {
		_, col := pooledSample(n)
		for j := col * pool; j < min(col*pool+pool, len(p)); j++ {
			sums[i] += p[j]
		}
	}
	return sums
}
