//go:build cuda

package cuda

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/attnb/attnb/cudaops"
	"gorgonia.org/cu"
)

// kernelNames are the kernels outside the families that [softmaxes], [prefills] and [decodes] list.
var kernelNames = []string{
	"gather4", "gather1", "add4", "add1", "rope_half4", "rope_half1", "rope_inter4", "rope_inter1",
	"softmax4_long", "softmax1_long", "gemm_128", "gemm_16", "decode_merge",
}

// load finds every kernel, so that none is loaded at its first launch, in the middle of someone's work.
func (b *Backend) load() error {
	b.functions = map[string]cu.Function{}
	names := kernelNames
	for _, s := range softmaxes {
		names = append(names, s.name(4), s.name(1))
	}
	for _, p := range prefills {
		names = append(names, p.name())
	}
	for _, d := range decodes {
		for _, g := range decodeGroups {
			names = append(names, d.name(g))
		}
	}
	for _, name := range names {
		f, err := b.module.Function(name)
		if err != nil {
			return fmt.Errorf("kernel %s: %w", name, err)
		}
		b.functions[name] = f
	}
	for _, p := range prefills {
		if bytes := p.shared(); bytes <= b.gpu.shared {
			if err := allowShared(b.functions[p.name()], bytes); err != nil {
				return fmt.Errorf("kernel %s: %w", p.name(), err)
			}
		}
	}
	return nil
}

// launch queues a kernel with its parameters, a struct of params.go.
func launch[P any](b *Backend, name string, g grid, threads, shared int, params *P) error {
	if g.x > math.MaxInt32 || g.y > math.MaxUint16 || g.z > math.MaxUint16 {
		return &cudaops.UnsupportedError{Op: name, Err: fmt.Errorf("a grid of %d x %d x %d blocks: %w", g.x, g.y, g.z, cudaops.ErrUnsupported)}
	}
	if b.launched != nil {
		b.launched(name)
	}
	return launchRaw(b.functions[name], g, threads, shared, b.stream, unsafe.Pointer(params), unsafe.Sizeof(*params))
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
