//go:build cuda

package cuda

// Planning of the kernels that treat every element by itself: which elements a block of threads takes.

const (
	blockThreads = 256
	unroll       = 4 // chunks a thread
)

// dims are the dimensions of the views of an elementwise op.
type dims struct{ heads, rows, cols int }

// flatten joins rows that touch in every view into one, and then heads that touch.
func flatten(d dims, views ...*view) dims {
	for _, v := range views {
		if d.rows > 1 && v.rs != int64(d.cols) {
			return d
		}
	}
	d.cols, d.rows = d.cols*d.rows, 1
	for _, v := range views {
		v.rs = int64(d.cols)
	}
	for _, v := range views {
		if d.heads > 1 && v.hs != int64(d.cols) {
			return d
		}
	}
	d.cols, d.heads = d.cols*d.heads, 1
	for _, v := range views {
		v.hs, v.rs = int64(d.cols), int64(d.cols)
	}
	return d
}

// aligned reports whether every row of the views can be accessed 16 bytes at a time.
func aligned(d dims, views ...*view) bool {
	if d.cols%4 != 0 {
		return false
	}
	for _, v := range views {
		if v.p%16 != 0 || d.rows > 1 && v.rs%4 != 0 || d.heads > 1 && v.hs%4 != 0 {
			return false
		}
	}
	return true
}

// spread lays out an elementwise op over blocks, in chunks of width elements.
func spread(d dims, width int, views ...*view) (e extent, blocks int) {
	cols := d.cols / width
	e = extent{heads: uint32(d.heads), rows: uint32(d.rows), cols: uint32(cols), lanes: 1}
	for _, v := range views {
		if d.heads > 1 && d.rows > 1 && v.hs < v.rs {
			e.headsInner = 1
		}
	}
	for e.lanes < blockThreads && int(e.lanes) < cols {
		e.lanes *= 2
	}
	rows := d.heads * d.rows
	if cols > blockThreads {
		tiles := (cols + unroll*blockThreads - 1) / (unroll * blockThreads)
		e.tiles = uint32(tiles)
		return e, rows * tiles
	}
	per := unroll * blockThreads / int(e.lanes)
	return e, (rows + per - 1) / per
}
