package host

import "github.com/attnb/attnb/cudaops"

const (
	linearSpan    = 256 // inputs that are added up apart: a long sum is no less accurate than a short one
	linearOutputs = 4 * tileKeys
	fewRows       = 4 // so few rows are quicker one by one than as lanes of a tile
)

// Scores writes scale * q.k.
func (b *Backend) Scores(dst, q, k cudaops.View, scale float32) error {
	group := q.H / k.H
	return b.blockwise(q, func(h, from, to int) {
		t := b.tiles.take(b.kernels, q.D)
		defer b.tiles.give(t)
		t.pack(head(q, h), from, to-from, 0, q.D)
		keys := head(k, h/group)
		for first := 0; first < k.S && !b.stop.Load(); first += tileKeys {
			n := min(tileKeys, k.S-first)
			t.eachStrip(to-from, func(k *stripKernels, lane int) {
				k.products(t.s[lane:], t.q[lane:], keys.from(first), keys.stride, n, keys.dim, scale)
			})
			t.turn(head(dst, h).from(from)[first:], dst.RowStride, t.s, tileRows, n, to-from)
		}
	})
}

// Linear writes x w^T + bias. Pieces that follow each other share their weights.
func (b *Backend) Linear(dst, x, w, bias cudaops.View) error {
	down := blocks(x.S, tileRows)
	return b.parallel(down*blocks(w.S, linearOutputs), func(i int) {
		first, from := i/down*linearOutputs, i%down*tileRows
		outputs, n := min(linearOutputs, w.S-first), min(tileRows, x.S-from)
		if n < fewRows {
			b.linearRows(dst, x, w, first, outputs, from, n)
		} else {
			b.linearTile(dst, x, w, first, outputs, from, n)
		}
		for s := from; bias.Mem != nil && s < from+n; s++ {
			b.kernels.fold(row(dst, 0, s)[first:first+outputs], row(bias, 0, 0)[first:], 1)
		}
	})
}

// linearTile computes some outputs of n rows, which are the lanes of a tile.
func (b *Backend) linearTile(dst, x, w cudaops.View, first, outputs, from, n int) {
	t := b.tiles.take(b.kernels, linearSpan) // so acc holds the outputs of the piece
	defer b.tiles.give(t)
	weights := head(w, 0)
	for at := 0; at < x.D; at += linearSpan {
		dims := min(linearSpan, x.D-at)
		t.pack(head(x, 0), from, n, at, dims)
		for o := 0; o < outputs; o += tileKeys {
			to := t.acc[o*tileRows : min(o+tileKeys, outputs)*tileRows]
			part := to
			if at > 0 {
				part = t.s[:len(to)]
			}
			t.eachStrip(n, func(k *stripKernels, lane int) {
				k.products(part[lane:], t.q[lane:], weights.from(first + o)[at:], weights.stride, len(to)/tileRows, dims, 1)
			})
			if at > 0 {
				t.fold(to, part, 1)
			}
		}
	}
	t.turn(head(dst, 0).from(from)[first:], dst.RowStride, t.acc, tileRows, outputs, n)
}

// linearRows is linearTile row by row, to the bit.
func (b *Backend) linearRows(dst, x, w cudaops.View, first, outputs, from, n int) {
	weights := head(w, 0)
	for s := from; s < from+n; s++ {
		to := row(dst, 0, s)[first : first+outputs]
		part := make([]float32, outputs)
		for at := 0; at < x.D; at += linearSpan {
			q := row(x, 0, s)[at:min(at+linearSpan, x.D)]
			if at == 0 {
				b.kernels.dots(to, q, weights.from(first), weights.stride, 1)
				continue
			}
			b.kernels.dots(part, q, weights.from(first)[at:], weights.stride, 1)
			b.kernels.fold(to, part, 1)
		}
	}
}
