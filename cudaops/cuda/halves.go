//go:build cuda

package cuda

import (
	"errors"
	"fmt"

	"github.com/attnb/attnb/cudaops"
)

// halvesKernel makes 16*tall*groups query rows of up to dim elements a block, in fp16x3 (prefill_halves.cu).
type halvesKernel struct{ dim, tall, groups int }

// halvesKernels are in order of preference for a head dim.
var halvesKernels = []halvesKernel{{64, 2, 4}, {64, 1, 4}, {64, 1, 2}, {128, 2, 4}, {128, 1, 4}, {128, 1, 2}}

// warpgroupKernel makes 128 rows of up to so many elements a block, by warpgroups (prefill_warpgroup.cu).
type warpgroupKernel int

const warpgroupRows = 128

func (k warpgroupKernel) name() string { return fmt.Sprintf("prefill_warpgroup_%d", int(k)) }

// shared is the bytes of shared memory that a block takes: queries, two tiles, each from a multiple of 1024 bytes on.
func (k warpgroupKernel) shared() int {
	const start = 1 << 10
	dim := int(k)
	tile := 4*tileKeys*dim*2 + ceil(4*halvesFactors(dim), start)*start
	return max(start+4*warpgroupRows*dim+2*tile, prefillKernel{dim, warpgroupRows / 16}.shared())
}

// onceKernel makes two groups of 16 rows of up to so many elements a block, for up to onceKeys keys (prefill_once.cu).
type onceKernel int

const onceRows, onceKeys, onceStride = 32, 128, 136

func (k onceKernel) name() string { return fmt.Sprintf("prefill_once_%d", int(k)) }

// shared is the bytes of shared memory that a block takes: queries and weights.
func (k onceKernel) shared() int {
	return max(4*onceRows*(int(k)+onceStride), prefillKernel{int(k), 1}.shared())
}

// oncePays says whether a prefill in products of tensor cores is to be made by one kernel alone.
func (b *Backend) oncePays(keys int) bool {
	return keys <= onceKeys && b.products != ProductsWarpgroup && b.prefillRows == 0
}

// halvesDims are those that tiles are made for.
var halvesDims = []int{64, 128}

const (
	tileKeys   = 64
	halvesRows = 64 // queries from which tiles pay
	halvesMin  = 48 // head dim from which the bound of a score holds for fp16x3 as for plain f32 (docs/tolerances.md)
)

func (k halvesKernel) name() string {
	return fmt.Sprintf("prefill_halves_%d_%d_%d", k.dim, k.tall, k.groups)
}

// halvesFactors is the floats that go with a tile.
func halvesFactors(dim int) int { return tileKeys + dim + 4 }

func halvesName(dim int) string { return fmt.Sprintf("halves_%d", dim) }

func (k halvesKernel) rows() int { return 16 * k.tall * k.groups }

// plain is the kernel whose work a block does where fp16x3 does not hold.
func (k halvesKernel) plain() prefillKernel { return prefillKernel{k.dim, k.rows() / 16} }

// shared is the bytes of shared memory that a block takes: queries and their factors, and steps of keys (prefill_halves.cu).
func (k halvesKernel) shared(stages int) int {
	tiles := 256 / k.groups / tileKeys // of a step
	step := tiles * (4*tileKeys*k.dim*2 + 4*halvesFactors(k.dim))
	joined := 4 * 32 * 8 * (k.tall*k.dim/2 + 4*k.tall)
	return max(4*k.rows()*(k.dim+1)+stages*step, joined, k.plain().shared())
}

// hasTensorCores reports whether the GPU multiplies matrices of fp16 as the kernels want it.
func (g gpu) hasTensorCores() bool { return g.major >= 8 }

// hasWarpgroups reports whether it does so by warpgroups: Hopper alone.
func (g gpu) hasWarpgroups() bool { return g.major == 9 && g.minor == 0 }

// chooseHalves returns the kernel for a head dim and the steps of keys that shared memory holds. Tall blocks read less, but there must
// be enough of them. A forced number of rows (of prefills) overrides that.
func chooseHalves(dim, rows, heads int, g gpu, forced int) (kernel halvesKernel, stages int) {
	for _, k := range halvesKernels {
		if k.dim < dim || k.dim > dim && kernel.dim != 0 && k.dim > kernel.dim || k.shared(1) > g.shared {
			continue
		}
		kernel = k
		if forced == k.plain().rows || forced == 0 && 2*ceil(rows, k.rows())*heads >= 3*g.sms {
			break
		}
	}
	switch {
	case kernel.dim == 0:
		return kernel, 0
	case kernel.shared(2) <= g.shared:
		return kernel, 2
	}
	return kernel, 1
}

// halvesPay says whether a prefill is to run in fp16x3.
func (b *Backend) halvesPay(queries, dim int) bool {
	switch {
	case !b.gpu.hasTensorCores() || b.products == ProductsFFMA || dim > halvesDims[len(halvesDims)-1]:
		return false
	case b.products != ProductsAuto:
		return true
	}
	return queries >= halvesRows && dim >= halvesMin
}

// warpgroupsPay says whether a prefill in fp16x3 is to run by warpgroups: where there are blocks for half of the multiprocessors.
func (b *Backend) warpgroupsPay(queries, heads int) bool {
	switch {
	case !b.gpu.hasWarpgroups() || b.products == ProductsWarp || b.prefillRows != 0:
		return false
	case b.products == ProductsWarpgroup:
		return true
	}
	return 2*ceil(queries, warpgroupRows)*heads >= b.gpu.sms
}

// halvesScratch is where tiles lie in memory.
type halvesScratch struct{ tiles, factors, reach pointer }

// prefillHalves queues a prefill in fp16x3: tiles of the keys and values, then the products. done is false where there is no
// kernel or no memory for that.
func (b *Backend) prefillHalves(plain prefillParams, q, k, v cudaops.View) (done bool, err error) {
	kernel, stages := chooseHalves(q.D, q.S, q.H, b.gpu, b.prefillRows)
	if stages == 0 {
		return false, nil
	}
	if once := onceKernel(kernel.dim); b.oncePays(k.S) {
		return true, launch(b, once.name(), grid{q.H, ceil(q.S, onceRows), 1}, blockThreads, once.shared(), &plain)
	}
	count := ceil(k.S, tileKeys)
	all := int64(k.H) * int64(count)
	tiles, factors := all*int64(4*tileKeys*kernel.dim*2), all*int64(4*halvesFactors(kernel.dim))
	scratch, err := b.alloc(tiles + factors + 4*all)
	if errors.Is(err, cudaops.ErrOutOfMemory) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer b.free(scratch) // behind what is queued
	s := halvesScratch{scratch, scratch + pointer(tiles), scratch + pointer(tiles+factors)}
	make := halvesParams{
		k: viewOf(k), v: viewOf(v), tiles: s.tiles, factors: s.factors, reach: s.reach,
		t: uint32(k.S), d: uint32(k.D), count: uint32(count),
	}
	make.vec = flag(aligned(dims{k.H, k.S, k.D}, &make.k, &make.v))
	use := prefillHalvesParams{prefillParams: plain, tiles: s.tiles, factors: s.factors, reach: s.reach, count: uint32(count), stages: uint32(stages)}
	if err := launch(b, halvesName(kernel.dim), grid{count, k.H, 1}, blockThreads, 0, &make); err != nil {
		return true, err
	}
	if w := warpgroupKernel(kernel.dim); b.warpgroupsPay(q.S, q.H) {
		return true, launch(b, w.name(), grid{q.H, ceil(q.S, warpgroupRows), 1}, blockThreads, w.shared(), &use)
	}
	return true, launch(b, kernel.name(), grid{q.H, ceil(q.S, kernel.rows()), 1}, blockThreads, kernel.shared(stages), &use)
}
