//go:build cuda

package cuda

import (
	"fmt"
	"math"
	"slices"
	"unsafe"

	"github.com/attnb/attnb/cudaops"
	"gorgonia.org/cu"
)

// kernelNames are the kernels outside the families that [normLanes], [softmaxes], [prefills], [halvesKernels], [decodeDims], [decodeGroups], [contextRows] and [contextColumns] list.
var kernelNames = []string{
	"gather4", "gather1", "add4", "add1", "multiply4", "multiply1", "activate4", "activate1", "embedding4", "embedding1",
	"norm_block", "norm_long", "rope_half4", "rope_half1", "rope_inter4", "rope_inter1",
	"softmax4_long", "softmax1_long", "gemm_128", "gemm_16", "gemv_1", "gemv_4",
	"lse", "lse_join", "pool", "pool_join", "variant_prefill", "variant_softmax",
}

// load finds every kernel, so that none is loaded at its first launch, in the middle of someone's work, and lets those
// that ask for shared memory have it.
func (b *Backend) load() error {
	b.functions = map[string]cu.Function{}
	names, sharing := slices.Clone(kernelNames), []string{}
	for _, l := range normLanes {
		names = append(names, normName(l.width))
	}
	for _, s := range softmaxes {
		each := []string{s.name(4), s.name(1)}
		if names = append(names, each...); s.lanes == 0 {
			sharing = append(sharing, each...)
		}
	}
	for _, p := range prefills {
		names, sharing = append(names, p.name()), append(sharing, p.name())
	}
	if b.gpu.hasTensorCores() {
		names = append(names, "halves_rows")
		if b.gpu.hasWarpgroups() {
			each := []string{"gemm_warpgroup"}
			for panels := 1; panels*panelCols <= cellMax; panels++ {
				each = append(each, warpgroupName("lse", panels), warpgroupName("pool", panels))
			}
			names, sharing = append(names, each...), append(sharing, each...)
		}
		for _, dim := range halvesDims {
			names = append(names, halvesName(dim), onceKernel(dim).name())
			if b.gpu.hasWarpgroups() {
				name := warpgroupKernel(dim).name()
				names, sharing = append(names, name), append(sharing, name)
			}
		}
		for _, k := range halvesKernels {
			names, sharing = append(names, k.name()), append(sharing, k.name())
		}
	}
	for _, dim := range decodeDims {
		for _, group := range decodeGroups {
			names = append(names, decodeKernel{dim, group}.name())
		}
	}
	for _, rows := range contextRows {
		for _, columns := range contextColumns {
			names = append(names, contextName(rows, columns))
		}
	}
	for _, name := range names {
		f, err := b.module.Function(name)
		if err != nil {
			return fmt.Errorf("kernel %s: %w", name, err)
		}
		b.functions[name] = f
	}
	for _, name := range sharing {
		if err := allowShared(b.functions[name], b.gpu.shared); err != nil {
			return fmt.Errorf("kernel %s: %w", name, err)
		}
	}
	return nil
}

// params is a struct of params.go that begins with [progressParams].
type params[P any] interface {
	*P
	header() *progressParams
}

// launch queues a kernel of the op that was numbered last.
func launch[P any, R params[P]](b *Backend, name string, g grid, threads, shared int, p R) error {
	if g.x > math.MaxInt32 || g.y > math.MaxUint16 || g.z > math.MaxUint16 {
		return &cudaops.UnsupportedError{Op: name, Err: fmt.Errorf("a grid of %d x %d x %d blocks: %w", g.x, g.y, g.z, cudaops.ErrUnsupported)}
	}
	b.last = name
	if b.launched != nil {
		b.launched(name)
	}
	*p.header() = progressParams{word: b.progress.device, op: b.progress.last}
	return launchRaw(b.functions[name], g, threads, shared, b.stream, unsafe.Pointer(p), unsafe.Sizeof(*p), b.gpu.startsEarly())
}

func ceil(a, b int) int { return (a + b - 1) / b }

func flag(b bool) int32 {
	if b {
		return 1
	}
	return 0
}

// viewOf gives a view the form that kernels take.
func viewOf(v cudaops.View) view {
	return view{address(v.Mem, v.Offset), int64(v.HeadStride), int64(v.RowStride)}
}
