//go:build cuda

package cuda

// The parameters of the kernels, as cudaops/kernels declares them in C: same fields, same order, same layout.

// pointer is an address in the GPU's memory; 0 is null.
type pointer uint64

// progressParams begin the parameters of every kernel.
type progressParams struct {
	word  pointer
	op, _ uint32
}

func (p *progressParams) header() *progressParams { return p }

// view is [heads, rows, cols]: element (h, s, i) is p[h*hs + s*rs + i].
type view struct {
	p      pointer
	hs, rs int64
}

type extent struct {
	heads, rows, cols        uint32
	lanes, tiles, headsInner uint32
}

const gatherPairs = 8

type pairParams struct {
	dst, src  view
	extent    extent
	blocks, _ uint32
}

type gatherParams struct {
	progressParams
	pair     [gatherPairs]pairParams
	pairs, _ uint32
}

type addParams struct {
	progressParams
	dst, a, b view
	extent    extent
}

type activateParams struct {
	progressParams
	dst, src view
	extent   extent
	kind, _  uint32
}

type multiplyParams struct {
	progressParams
	dst, a, b view
	extent    extent
}

type embeddingParams struct {
	progressParams
	dst, table view
	tokens     pointer
	extent     extent
}

type normParams struct {
	progressParams
	dst, x, w, b      view
	heads, rows, cols uint32
	epsilon           float32
	centred, vec      int32
}

const (
	ropeFrequencies = 256
	ropeTable       = 512
)

type ropeParams struct {
	progressParams
	dst, src            view
	positions           pointer
	offset              int64
	magnitude           float64
	heads, rows, cols   uint32
	pairs, first, count uint32
	copyFrom            uint32
	rowsPerBlock        uint32
	headsPerBlock       uint32
	floatAngles         uint32
	frequency           [ropeFrequencies]float64
}

type softmaxParams struct {
	progressParams
	dst, src       view
	heads, rows    uint32
	cols, diagonal int64
	causal, _      int32
}

type gemmParams struct {
	progressParams
	a, b, c        view
	bias           pointer
	m, n, k, group uint32
	alpha          float32
	vec            int32
}

type contextParams struct {
	progressParams
	p, v, out      view
	s, t, d, group uint32
	vec, _         int32
}

type prefillParams struct {
	progressParams
	out, q, k, v   view
	lse            pointer
	lseStride      int64
	diagonal       int64
	s, t, d, group uint32
	scale          float32
	causal, vec, _ int32
}

type halvesParams struct {
	progressParams
	k, v                  view
	tiles, factors, reach pointer
	t, d, count           uint32
	vec                   int32
}

type prefillHalvesParams struct {
	prefillParams
	tiles, factors, reach pointer
	count, stages         uint32
}

type halvesRowsParams struct {
	progressParams
	m                         view
	panels, factors, holds    pointer
	rows, cols, blocks, count uint32
	vec, _                    int32
}

type gemmHalvesParams struct {
	gemmParams
	a, b                               pointer
	aFactors, bFactors, aHolds, bHolds pointer
	aBlocks, bBlocks, count, _         uint32
}

type cellsParams struct {
	progressParams
	q, k                       view
	lse, out, parts            pointer
	lseStride, diagonal        int64
	s, t, d, group             uint32
	first, keys                uint32
	rowPools, rowParts         uint32
	rowGroup, pieces           uint32
	colPools, colParts         uint32
	unit0, units               uint32
	perBlock                   uint32
	scale                      float32
	extreme, causal, vec, slot int32
}

type cellsHalvesParams struct {
	cellsParams
	panels, factors, holds pointer
	blocks, _              uint32
}

type lseJoinParams struct {
	progressParams
	parts, out, state pointer
	stride            int64
	rows              uint64
	s, from, to, _    uint32
}

type poolJoinParams struct {
	progressParams
	parts                 pointer
	out                   view
	diagonal              int64
	cells                 uint64
	heads, s, t           uint32
	rowPools, rowParts    uint32
	rowGroup, pieces      uint32
	colPools, colParts    uint32
	unit0, units, columns uint32
	first, pool0, pools   uint32
	lanes                 uint32
	extreme, mean         int32
	probabilities, causal int32
}

type decodeParams struct {
	progressParams
	out, q, k, v       view
	part, tickets      pointer
	heads, t, d, group uint32
	splits, keys       uint32
	stride             uint32
	scale              float32
	vec, _             int32
}

type changedParams struct {
	progressParams
	out, q, k, v, bias, allowed view
	sinks, slopes, lse          pointer
	intervals, empty            pointer
	lseStride, diagonal         int64
	s, t, d, group              uint32
	heads, rowBlocks            uint32
	scale, cap                  float32
}
