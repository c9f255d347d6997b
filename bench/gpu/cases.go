//go:build cuda

package main

import (
	"math"
	"time"

	"github.com/attnb/attnb/cudaops"
)

// The dimensions of the memory-bound ops: rows of a hidden state of 32 heads of 128.
const (
	manyRows = 16384
	heads    = 32
	headDim  = 128
)

// cases are what is measured. Those of one list are compared, and take turns.
func cases() [][]benchCase {
	var all [][]benchCase
	one := func(c benchCase) { all = append(all, []benchCase{c}) }
	all = append(all, []benchCase{ropeCase(manyRows, 0), ropeCase(manyRows, 1000000), ropeCase(manyRows, 1048575-manyRows+1)})
	one(gatherCase(manyRows))
	one(addCase())
	one(softmaxCase(manyRows, manyRows, false))
	one(softmaxCase(manyRows, manyRows, true))
	for _, cols := range []int{128, 1024, 4096, 32768, 65536} {
		one(softmaxCase(manyRows*manyRows/cols, cols, false))
	}
	one(softmaxCase(manyRows, manyRows-1, false)) // rows that are not aligned
	all = append(all, []benchCase{appendCase(1024), appendCase(65536)})
	one(linearCase(4096, 12288))
	one(contextCase(32, 128, 2048))
	one(tinyCase())
	one(pooledCase(picture{131072, 512}))
	one(layerCase())
	one(stepCase())
	for _, g := range [][2]int{{16, 64}, {32, 128}} {
		for _, s := range []int{128, 512, 1024, 4096, 16384} {
			one(prefillCase(g[0], g[0], g[1], s, ""))
		}
	}
	one(prefillCase(32, 8, 128, 4096, ""))
	one(prefillCase(2, 2, 128, 4096, "amp4"))
	one(prefillCase(2, 2, 64, 65536, ""))
	one(prefillCase(2, 2, 64, 16384, "positive"))
	for _, kind := range []string{"denormal", "spread"} {
		one(prefillCase(8, 8, 128, 4096, kind))
	}
	for _, g := range [][3]int{{16, 16, 64}, {32, 32, 128}, {32, 8, 128}} {
		for _, t := range []int{128, 1024, 8192, 65536} {
			one(decodeCase(g[0], g[1], g[2], t, ""))
		}
	}
	one(decodeCase(64, 8, 128, 65536, ""))
	one(decodeCase(32, 1, 128, 65536, ""))
	one(decodeCase(2, 2, 64, 65536, ""))
	for _, kind := range []string{"amp4", "positive", "denormal", "spread"} {
		one(decodeCase(8, 8, 128, 8192, kind))
	}
	return all
}

// input uploads normal values as [h, s, d], one tensor for each set, and keeps the host's copy of the first. Tensor number
// which of set i has seed 8*i + which.
func (p *prepared) input(m *meter, sets, which, h, s, d int, kind string) (host []float32, bufs []*cudaops.Buffer, err error) {
	for i := range sets {
		x := shaped(normal(uint64(8*i+which), h*s*d), kind)
		b, err := m.d.Upload(x, h, s, d)
		if err != nil {
			return nil, nil, err
		}
		p.held = append(p.held, b)
		bufs = append(bufs, b)
		if i == 0 {
			host = x
		}
	}
	return host, bufs, nil
}

// drop releases a result that nobody reads.
func drop(b *cudaops.Buffer, err error) error {
	if err != nil {
		return err
	}
	return b.Release()
}

// rows downloads the sampled rows of a result.
func rows(m *meter, b *cudaops.Buffer, pairs [][2]int) (got []float32, err error) {
	for _, p := range pairs {
		head, err := b.Head(p[0])
		if err != nil {
			return nil, err
		}
		row, err := head.Rows(p[1], p[1]+1)
		if err != nil {
			return nil, err
		}
		x, err := m.d.Download(row)
		if err != nil {
			return nil, err
		}
		got = append(got, x...)
		_ = row.Release()
		_ = head.Release()
	}
	return got, b.Release()
}

// checked compares the sampled rows of an op's result with the truth of each.
func checked(m *meter, h, s int, op func() (*cudaops.Buffer, error), truth func(head, row int) []float64) func() (float64, error) {
	return func() (float64, error) {
		out, err := op()
		if err != nil {
			return 0, err
		}
		pairs := sampled(h, s)
		got, err := rows(m, out, pairs)
		if err != nil {
			return 0, err
		}
		each := make([][]float64, len(pairs))
		parallel(len(pairs), func(from, to int) {
			for i := from; i < to; i++ {
				each[i] = truth(pairs[i][0], pairs[i][1])
			}
		})
		var want []float64
		for _, w := range each {
			want = append(want, w...)
		}
		return relL2(got, want), nil
	}
}

func ropeCase(s, offset int) benchCase {
	n := float64(4 * s * heads * headDim)
	return benchCase{
		row: row{Op: "rope", H: heads, D: headDim, S: s, Offset: offset}, bytes: 2 * n, inputs: n,
		prepare: func(m *meter, sets int) (*prepared, error) {
			p := &prepared{}
			host, x, err := p.input(m, sets, 0, heads, s, headDim, "")
			if err != nil {
				return p, err
			}
			r := cudaops.RoPE{Rotary: headDim, Base: 10000, Offset: offset}
			p.run = func(set int) error { return drop(m.d.RoPE(x[set], r)) }
			p.error = checked(m, heads, s, func() (*cudaops.Buffer, error) { return m.d.RoPE(x[0], r) }, func(h, i int) []float64 {
				return turned(host[(h*s+i)*headDim:][:headDim], offset+i)
			})
			return p, nil
		},
	}
}

func gatherCase(s int) benchCase {
	n := float64(4 * s * 3 * heads * headDim)
	return benchCase{
		row: row{Op: "gather", H: heads, D: headDim, S: s}, bytes: 2 * n, inputs: n,
		prepare: func(m *meter, sets int) (*prepared, error) {
			p := &prepared{}
			host, x, err := p.input(m, sets, 0, 1, s, 3*heads*headDim, "")
			if err != nil {
				return p, err
			}
			p.run = func(set int) error { return dropAll(split(m.d, x[set])) }
			p.error = checked(m, heads, s, func() (*cudaops.Buffer, error) {
				parts, err := split(m.d, x[0])
				if err != nil {
					return nil, err
				}
				return parts[1], dropAll([]*cudaops.Buffer{parts[0], parts[2]}, nil)
			}, func(h, i int) []float64 {
				return widen(host[(i*3*heads+heads+h)*headDim:][:headDim])
			})
			return p, nil
		},
	}
}

func addCase() benchCase {
	n := float64(4 * manyRows * heads * headDim)
	return benchCase{
		row: row{Op: "add", D: heads * headDim, S: manyRows}, bytes: 3 * n, inputs: 2 * n,
		prepare: func(m *meter, sets int) (*prepared, error) {
			p := &prepared{}
			a, x, err := p.input(m, sets, 0, 1, manyRows, heads*headDim, "")
			if err != nil {
				return p, err
			}
			b, y, err := p.input(m, sets, 1, 1, manyRows, heads*headDim, "")
			if err != nil {
				return p, err
			}
			p.run = func(set int) error { return drop(m.d.Add(x[set], y[set])) }
			p.error = checked(m, 1, manyRows, func() (*cudaops.Buffer, error) { return m.d.Add(x[0], y[0]) }, func(_, s int) []float64 {
				sum := widen(a[s*heads*headDim:][:heads*headDim])
				for i := range sum {
					sum[i] += float64(b[s*heads*headDim+i])
				}
				return sum
			})
			return p, nil
		},
	}
}

func softmaxCase(rows, cols int, causal bool) benchCase {
	n := 4 * float64(rows) * float64(cols)
	mask := cudaops.Mask{Causal: causal}
	return benchCase{
		row: row{Op: "softmax", S: rows, D: cols, Causal: causal}, bytes: 2 * n, inputs: n,
		prepare: func(m *meter, sets int) (*prepared, error) {
			p := &prepared{}
			host, x, err := p.input(m, sets, 0, 1, rows, cols, "")
			if err != nil {
				return p, err
			}
			op := func(set int) (*cudaops.Buffer, error) {
				y, _, err := m.d.Softmax(x[set], mask)
				return y, err
			}
			p.run = func(set int) error { return drop(op(set)) }
			p.error = checked(m, 1, rows, func() (*cudaops.Buffer, error) { return op(0) }, func(_, s int) []float64 {
				return softmax(widen(host[s*cols:][:cols]), mask.Visible(s, cols))
			})
			return p, nil
		},
	}
}

// tinyCase is an op that the device is done with at once: what remains is the way there.
func tinyCase() benchCase {
	const n = 64
	return benchCase{
		row: row{Op: "tiny", D: n, S: 1}, bytes: 3 * 4 * n, inputs: 1e12, // one set
		prepare: func(m *meter, _ int) (*prepared, error) {
			p := &prepared{}
			a, x, err := p.input(m, 1, 0, 1, 1, n, "")
			if err != nil {
				return p, err
			}
			p.run = func(int) error { return drop(m.d.Add(x[0], x[0])) }
			p.error = checked(m, 1, 1, func() (*cudaops.Buffer, error) { return m.d.Add(x[0], x[0]) }, func(int, int) []float64 {
				sum := widen(a)
				for i := range sum {
					sum[i] *= 2
				}
				return sum
			})
			return p, nil
		},
	}
}

// appendCase appends one row to a cache of t rows. The first append doubles the capacity and is reported by itself.
func appendCase(t int) benchCase {
	n := float64(4 * heads * headDim)
	return benchCase{
		row: row{Op: "append", H: heads, D: headDim, T: t}, bytes: 2 * n, inputs: 1e12, // one set
		prepare: func(m *meter, _ int) (*prepared, error) {
			p := &prepared{}
			first, x, err := p.input(m, 1, 0, heads, t, headDim, "")
			if err != nil {
				return p, err
			}
			host, row, err := p.input(m, 1, 1, heads, 1, headDim, "")
			if err != nil {
				return p, err
			}
			begun, err := m.d.AppendKV(nil, x[0])
			if err != nil {
				return p, err
			}
			cache := begun
			step := func(int) error {
				next, err := m.d.AppendKV(cache, row[0])
				if err != nil {
					return err
				}
				err = cache.Release()
				cache = next
				return err
			}
			p.more = func() (peak int64, took time.Duration, err error) {
				took, err = m.b.Elapsed(func() error {
					next, err := m.d.AppendKV(cache, row[0])
					if err != nil {
						return err
					}
					peak = m.d.InUse() // old and new are both there
					err = cache.Release()
					cache = next
					return err
				})
				return peak, took, err
			}
			p.run, p.mostRuns = step, 60 // fewer in all than the capacity still takes
			p.error = checked(m, heads, t+1, func() (*cudaops.Buffer, error) { return m.d.AppendKV(x[0], row[0]) }, func(h, s int) []float64 {
				if s == t {
					return widen(host[h*headDim:][:headDim])
				}
				return widen(first[(h*t+s)*headDim:][:headDim])
			})
			return p, nil
		},
	}
}

func linearCase(s, out int) benchCase {
	const in = 4096
	return benchCase{
		row:   row{Op: "linear", S: s, T: out, D: in},
		bytes: 4 * float64(s*in+in*out+s*out), flops: 2 * float64(s*in) * float64(out), inputs: 4 * float64(s*in+in*out), tensor: true,
		prepare: func(m *meter, sets int) (*prepared, error) {
			p := &prepared{}
			x, xb, err := p.input(m, sets, 0, 1, s, in, "")
			if err != nil {
				return p, err
			}
			w, wb, err := p.input(m, sets, 1, 1, out, in, "")
			if err != nil {
				return p, err
			}
			p.run = func(set int) error { return drop(m.d.Linear(xb[set], wb[set], nil)) }
			p.error = checked(m, 1, s, func() (*cudaops.Buffer, error) { return m.d.Linear(xb[0], wb[0], nil) }, func(_, r int) []float64 {
				y := make([]float64, out)
				for j := range y {
					y[j] = dot(x[r*in:][:in], w[j*in:][:in])
				}
				return y
			})
			return p, nil
		},
	}
}

func contextCase(h, d, n int) benchCase {
	return benchCase{
		row:   row{Op: "context", H: h, KV: h, D: d, S: n, T: n},
		bytes: 4 * float64(h*n*n+2*h*n*d), flops: 2 * float64(h*n*n) * float64(d), inputs: 4 * float64(h*n*n+h*n*d),
		prepare: func(m *meter, sets int) (*prepared, error) {
			p := &prepared{}
			weights, pb, err := p.input(m, sets, 0, h, n, n, "positive")
			if err != nil {
				return p, err
			}
			v, vb, err := p.input(m, sets, 1, h, n, d, "")
			if err != nil {
				return p, err
			}
			p.run = func(set int) error { return drop(m.d.Context(pb[set], vb[set])) }
			p.error = checked(m, h, n, func() (*cudaops.Buffer, error) { return m.d.Context(pb[0], vb[0]) }, func(head, r int) []float64 {
				out := make([]float64, d)
				for j, w := range weights[(head*n+r)*n:][:n] {
					for i, x := range v[(head*n+j)*d:][:d] {
						out[i] += float64(w) * float64(x)
					}
				}
				return out
			})
			return p, nil
		},
	}
}

func attentionBytes(h, kv, d, s, t int) float64 { return 4 * float64(2*h*s*d+2*kv*t*d) }

func prefillCase(h, kv, d, s int, kind string) benchCase {
	scale := 1 / math.Sqrt(float64(d))
	return benchCase{
		row:   row{Op: "prefill", Input: kind, H: h, KV: kv, D: d, S: s, T: s, Causal: true},
		bytes: attentionBytes(h, kv, d, s, s), flops: 4 * float64(h) * float64(d) * float64(s) * float64(s+1) / 2,
		inputs: attentionBytes(h, kv, d, s, s) / 2, tensor: true,
		prepare: func(m *meter, sets int) (*prepared, error) {
			p := &prepared{}
			hq, hk, hv, bufs, err := p.attention(m, sets, h, kv, d, s, s, kind)
			if err != nil {
				return p, err
			}
			op := func(set int) (*cudaops.Buffer, error) {
				r, err := m.d.Prefill(bufs[0][set], bufs[1][set], bufs[2][set], cudaops.Attention{Scale: scale, Mask: cudaops.Mask{Causal: true}})
				return r.Context, err
			}
			p.run = func(set int) error { return drop(op(set)) }
			p.error = checked(m, h, s, func() (*cudaops.Buffer, error) { return op(0) }, func(head, r int) []float64 {
				g := head / (h / kv)
				return attention(hq[(head*s+r)*d:][:d], hk[g*s*d:][:s*d], hv[g*s*d:][:s*d], scale, r+1)
			})
			return p, nil
		},
	}
}

func decodeCase(h, kv, d, t int, kind string) benchCase {
	scale := 1 / math.Sqrt(float64(d))
	return benchCase{
		row:   row{Op: "decode", Input: kind, H: h, KV: kv, D: d, T: t},
		bytes: attentionBytes(h, kv, d, 1, t), flops: 4 * float64(h*d*t), inputs: attentionBytes(h, kv, d, 1, t),
		prepare: func(m *meter, sets int) (*prepared, error) {
			p := &prepared{}
			hq, hk, hv, bufs, err := p.attention(m, sets, h, kv, d, 1, t, kind)
			if err != nil {
				return p, err
			}
			op := func(set int) (*cudaops.Buffer, error) {
				return m.d.Decode(bufs[0][set], bufs[1][set], bufs[2][set], scale)
			}
			p.run = func(set int) error { return drop(op(set)) }
			p.error = checked(m, h, 1, func() (*cudaops.Buffer, error) { return op(0) }, func(head, _ int) []float64 {
				g := head / (h / kv)
				return attention(hq[head*d:][:d], hk[g*t*d:][:t*d], hv[g*t*d:][:t*d], scale, t)
			})
			return p, nil
		},
	}
}

// attention makes q, k and v. "amp4" is of the queries, "positive" of the values, the others of all.
func (p *prepared) attention(m *meter, sets, h, kv, d, s, t int, kind string) (hq, hk, hv []float32, bufs [3][]*cudaops.Buffer, err error) {
	kinds := [3]string{}
	switch kind {
	case "amp4":
		kinds[0] = kind
	case "positive":
		kinds[2] = kind
	case "denormal", "spread":
		kinds = [3]string{kind, kind, kind}
	}
	if hq, bufs[0], err = p.input(m, sets, 0, h, s, d, kinds[0]); err != nil {
		return
	}
	if hk, bufs[1], err = p.input(m, sets, 1, kv, t, d, kinds[1]); err != nil {
		return
	}
	hv, bufs[2], err = p.input(m, sets, 2, kv, t, d, kinds[2])
	return
}
