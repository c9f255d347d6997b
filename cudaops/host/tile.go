package host

import (
	"math"
	"sync"
	"unsafe"

	"github.com/attnb/attnb/cudaops"
)

const (
	tileRows = 64 // queries, one a lane: what a kernel reads of a key serves all of them
	tileKeys = 64 // keys of a block; a row's sums over a block are added up apart
	strip    = 16 // lanes that see their own keys of a block; a wider kernel takes them where all see the same
)

// tile is what a worker needs for a block of queries. Its matrices have a query in each column, so that kernels compute
// many queries with one instruction, and a sum never crosses lanes: its order does not depend on what else is in the tile.
type tile struct {
	*kernels
	q                       []float32 // [dim][tileRows]
	s                       []float32 // [tileKeys][tileRows]: scores, then weights
	acc                     []float32 // [dim][tileRows]: the weighted sum of the values so far
	m, l, base, factor, sum []float32 // [tileRows]; see attend
	row                     []float32 // one lane's scores, or its values
	memory                  []float32
}

// tiles hands out tiles, which are kept between ops.
type tiles struct{ pool sync.Pool }

// take makes a tile for heads of dim elements.
func (p *tiles) take(k *kernels, dim int) *tile {
	t, _ := p.pool.Get().(*tile)
	if t == nil {
		t = &tile{}
	}
	t.kernels = k
	wide := dim * tileRows
	row := blocks(max(dim, tileKeys), 16) * 16
	if need := 2*wide + tileKeys*tileRows + 5*tileRows + row; len(t.memory) < need {
		t.memory = aligned(need)
	}
	left := t.memory
	cut := func(n int) []float32 {
		part := left[:n:n]
		left = left[n:]
		return part
	}
	t.q, t.s, t.acc = cut(wide), cut(tileKeys*tileRows), cut(wide)
	for _, v := range []*[]float32{&t.m, &t.l, &t.base, &t.factor, &t.sum} {
		*v = cut(tileRows)
	}
	t.row = cut(row)
	return t
}

func (p *tiles) give(t *tile) { p.pool.Put(t) }

// aligned is memory that begins a cache line, so that no vector lies in two.
func aligned(n int) []float32 {
	const line = 16 // floats
	x := make([]float32, n+line)
	at := int(uintptr(unsafe.Pointer(&x[0])) / 4 % line)
	return x[(line-at)%line:][:n]
}

// matrix is one head of a view.
type matrix struct {
	data        []float32
	dim, stride int
}

func head(v cudaops.View, h int) matrix {
	return matrix{data(v.Mem)[v.Offset+h*v.HeadStride:], v.D, v.RowStride}
}

// from is the memory from row r on.
func (m matrix) from(r int) []float32 { return m.data[r*m.stride:] }

// pack makes n rows of m from a row on, and dims of them from one on, the columns of q. Lanes without a row, up to a strip, are 0.
func (t *tile) pack(m matrix, row, n, first, dims int) {
	t.turn(t.q, tileRows, m.from(row)[first:], m.stride, n, dims)
	if end := blocks(n, strip) * strip; end > n {
		for i := range dims {
			clear(t.q[i*tileRows+n : i*tileRows+end])
		}
	}
}

// eachStrip calls do for kernels that together compute n lanes.
func (t *tile) eachStrip(n int, do func(k *stripKernels, lane int)) {
	if t.wide.lanes > strip && n > t.wide.lanes-strip {
		do(&t.wide, 0)
		return
	}
	for lane := 0; lane < n; lane += strip {
		do(&t.strip, lane)
	}
}

// lowest is below every score.
var lowest = float32(math.Inf(-1))

// above0 is the base of exponentials: the maximum m, or 0 where nothing over -Inf was seen, so that the -Inf seen count
// nothing and a NaN shows.
func above0(m float32) float32 {
	if m == lowest {
		return 0
	}
	return m
}
