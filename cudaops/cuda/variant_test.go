//go:build cuda

package cuda

import (
	"fmt"

	"github.com/attnb/attnb/cudaops"
)

// variantOps are of everything that a variant changes at once. The conformance suite has each by itself.
func variantOps() []op {
	var all []op
	for _, dim := range []int{40, 128, 300} {
		all = append(all, op{fmt.Sprintf("variant of dim %d", dim), [][3]int{{4, 70, dim}, {2, 150, dim}, {2, 150, dim}, {1, 70, 150}, {1, 1, 4}, {4, 1, 150}},
			func(d *cudaops.Device, in []*cudaops.Buffer) (*cudaops.Buffer, error) {
				r, err := d.Prefill(in[0], in[1], in[2], cudaops.Attention{
					Scale: 0.1, Mask: cudaops.Mask{Causal: true, Diagonal: 80, Window: 60, PadLeft: 3},
					Variant: cudaops.Variant{Softcap: 2, Slopes: []float64{.5, .25, .125, .0625}, Bias: in[3], Sinks: in[4], Allowed: in[5]},
				})
				return r.Context, err
			}})
	}
	for _, cols := range []int{5, 256, 1030} {
		all = append(all, op{fmt.Sprintf("variant of %d columns", cols), [][3]int{{2, 5, cols}, {1, 1, 2}}, func(d *cudaops.Device, in []*cudaops.Buffer) (*cudaops.Buffer, error) {
			y, _, err := d.SoftmaxVariant(in[0], cudaops.Mask{Window: 200, Diagonal: cols / 2}, cudaops.Variant{Softcap: 3, Sinks: in[1]})
			return y, err
		}})
	}
	return all
}
