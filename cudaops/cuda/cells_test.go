//go:build cuda

package cuda

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/attnb/attnb/cudaops"
)

// Launches take every column once and in order, within what scratch memory is allowed, and a launch of one column is the least.
func TestPlanPool(t *testing.T) {
	b := &Backend{gpu: gpu{sms: 132}}
	for _, limit := range []int64{1, 1 << 20, cellScratch} {
		b.cellScratch = limit
		for _, c := range [][4]int{{131072, 131072, 512, 512}, {131072, 131072, 131072, 1}, {100, 131072, 100, 131072}, {1, 1 << 20, 1, 1}, {4097, 5000, 7, 33}, {70, 90, 70, 90}} {
			for _, heads := range [][2]int{{1, 1}, {32, 8}} {
				for _, fast := range []bool{false, true} {
					t.Run(fmt.Sprint(limit, c, heads, fast), func(t *testing.T) {
						q, k := cudaops.View{H: heads[0], S: c[0], D: 128}, cudaops.View{H: heads[1], S: c[1], D: 128}
						p := b.planPool(cudaops.View{H: heads[0], S: c[2], D: c[3]}, q, k, fast)
						if p.start(0) != 0 || p.start(p.columns) != c[1] {
							t.Errorf("%+v: columns from %d to %d", p, p.start(0), p.start(p.columns))
						}
						widest := 0
						for at := 0; at < p.columns; at += p.chunk {
							from, to := p.start(at), p.start(min(at+p.chunk, p.columns))
							if from >= to || to-from > p.keys {
								t.Fatalf("%+v: a launch of keys %d to %d", p, from, to)
							}
							widest = max(widest, to-from)
						}
						if rows := p.rows; rows.group*rows.parts < ceil(c[0], c[2]) || rows.group > max(1, c[0]/c[2]) {
							t.Errorf("%d rows in %d: %+v", c[0], c[2], rows)
						}
						if p.bytes > limit+limit/8 && (p.chunk > 1 || p.heads > 1) {
							t.Errorf("%+v takes %d bytes of %d", p, p.bytes, limit)
						}
					})
				}
			}
		}
	}
}

// The picture of one long head takes no allocation of 64 MB.
func TestPlanLong(t *testing.T) {
	b := &Backend{gpu: gpu{sms: 132}, cellScratch: cellScratch}
	q := cudaops.View{H: 1, S: 131072, D: 128}
	for _, fast := range []bool{false, true} {
		pool := b.planPool(cudaops.View{H: 1, S: 512, D: 512}, q, q, fast)
		lse := b.planLSE(q, q, fast)
		if pool.bytes > 64e6 || lse.bytes > 64e6 {
			t.Errorf("tensor cores %v: Pool takes %d bytes, LSE %d", fast, pool.bytes, lse.bytes)
		}
		t.Logf("tensor cores %v: Pool %+v, LSE %+v", fast, pool, lse)
	}
}

// What a kernel asks of shared memory is there.
func TestCellsShared(t *testing.T) {
	for panels := 1; panels*panelCols <= cellMax; panels++ {
		if n := cellsShared(panels); n > 227<<10-fixedShared {
			t.Errorf("%d panels take %d bytes", panels, n)
		}
	}
}

// Queries and keys that pairs of fp16 do not hold are found out on the GPU, whose results are then, bit for bit, those of FFMA; and the others' are not.
func TestHardCells(t *testing.T) {
	b := openBackend(t, Options{})
	d := openDevice(t, b)
	if !b.gpu.hasWarpgroups() {
		t.Skip("no warpgroups")
	}
	const queries, keys, dim = 70, 300, 72
	mask := cudaops.Mask{Causal: true, Diagonal: keys - queries - 1} // the last key is hidden
	spread := func(r, c int, x *float32) { *x = float32(math.Ldexp(float64(*x), -(r*7+c)%61)) }
	for _, c := range []struct {
		name   string
		plain  bool
		change func(q, k [][]float32)
	}{
		{"normal", false, func(q, k [][]float32) {}},
		{"zeros", false, func(q, k [][]float32) { clear(k[5]); clear(q[9]) }},
		{"great keys", true, func(q, k [][]float32) { each(k, func(_, _ int, x *float32) { *x *= 1e25 }) }},
		{"denormal keys", true, func(q, k [][]float32) { each(k, func(_, _ int, x *float32) { *x *= 1e-39 }) }},
		{"spread keys", true, func(q, k [][]float32) { each(k, spread) }},
		{"spread queries", true, func(q, k [][]float32) { each(q, spread) }},
		{"a hidden NaN", true, func(q, k [][]float32) { k[keys-1][3] = float32(math.NaN()) }},
		{"an infinite query", true, func(q, k [][]float32) { q[queries-1][3] = float32(math.Inf(1)) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(5, 6))
			q, k := random(r, queries, dim), random(r, keys, dim)
			c.change(q, k)
			var in []*cudaops.Buffer
			for _, x := range [][][]float32{q, k} {
				buf, err := d.Upload(slices.Concat(x...), 1, len(x), dim)
				if err != nil {
					t.Fatal(err)
				}
				defer buf.Release()
				in = append(in, buf)
			}
			run := func(p Products) (all []float32) {
				b.products = p
				lse, err := d.LSE(in[0], in[1], 0.125, mask)
				if err != nil {
					t.Fatal(err)
				}
				defer lse.Release()
				picture, err := d.Pool(in[0], in[1], lse, cudaops.Pooling{Scale: 0.125, Mask: mask, Reduce: cudaops.Mean, Rows: 3, Cols: 2})
				if err != nil {
					t.Fatal(err)
				}
				defer picture.Release()
				for _, x := range []*cudaops.Buffer{lse, picture} {
					got, err := d.Download(x)
					if err != nil {
						t.Fatal(err)
					}
					all = append(all, got...)
				}
				return all
			}
			plain := run(ProductsFFMA)
			for range 3 { // a race would show in one of them
				if same := equalBits(run(ProductsWarpgroup), plain); same != c.plain {
					t.Errorf("the bits of FFMA: %v, want %v", same, c.plain)
				}
			}
		})
	}
	b.products = ProductsAuto
}

// Where scratch memory does not fit, LSE does without, and Pool fails whole.
func TestCellsOutOfMemory(t *testing.T) {
	b := openBackend(t, Options{})
	d := openDevice(t, b)
	const rows, dim = 200, 64
	q, err := d.Upload(slices.Concat(random(rand.New(rand.NewPCG(1, 2)), rows, dim)...), 1, rows, dim)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Release()
	sums := func() []float32 {
		lse, err := d.LSE(q, q, 0.125, cudaops.Mask{})
		if err != nil {
			t.Fatal(err)
		}
		defer lse.Release()
		got, err := d.Download(lse)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	want, before := sums(), d.InUse()
	b.quota = before + 4*rows // the result fits
	defer func() { b.quota = 0 }()
	if got := sums(); !(distance(got, want) <= 1e-6) {
		t.Errorf("LSE is %g off without scratch memory", distance(got, want))
	}
	b.quota = before + 4*10*5
	if _, err := d.Pool(q, q, nil, cudaops.Pooling{Scale: 0.125, Rows: 10, Cols: 5}); !errors.Is(err, cudaops.ErrOutOfMemory) {
		t.Errorf("Pool: %v", err)
	}
	if now := d.InUse(); now != before {
		t.Errorf("%d bytes in use, %d before", now, before)
	}
}
