package cuda

import (
	"fmt"
	"slices"
	"strings"
)

// Products says how products of matrices are computed. All are of f32 accuracy.
type Products uint8

// The ways. Where fp16x3 does not hold the values of a block to f32 accuracy, that block's are computed by FFMA, whatever is chosen:
// the GPU decides that by what it finds in them.
const (
	ProductsAuto      Products = iota // by shape and GPU
	ProductsFFMA                      // the plain arithmetic units
	ProductsFP16x3                    // tensor cores, three products of fp16 slices; needs compute capability 8.0
	ProductsWarp                      // the same by warps (mma.sync) alone
	ProductsWarpgroup                 // the same by warpgroups (wgmma) alone; needs compute capability 9.0, else it is by warps
)

var productNames = []string{"auto", "ffma", "fp16x3", "fp16x3-warp", "fp16x3-warpgroup"}

func (p Products) String() string {
	if int(p) < len(productNames) {
		return productNames[p]
	}
	return fmt.Sprintf("Products(%d)", uint8(p))
}

// ParseProducts reads the name of a way; an empty text is auto.
func ParseProducts(s string) (Products, error) {
	if s == "" {
		return ProductsAuto, nil
	}
	if i := slices.Index(productNames, s); i >= 0 {
		return Products(i), nil
	}
	return 0, fmt.Errorf("products %q: want one of %s", s, strings.Join(productNames, ", "))
}
