package cuda

import "testing"

func TestParseProducts(t *testing.T) {
	for _, p := range []Products{ProductsAuto, ProductsFFMA, ProductsFP16x3, ProductsWarp, ProductsWarpgroup} {
		if got, err := ParseProducts(p.String()); err != nil || got != p {
			t.Errorf("ParseProducts(%q) = %v, %v", p, got, err)
		}
	}
	if p, err := ParseProducts(""); err != nil || p != ProductsAuto {
		t.Errorf("%v, %v", p, err)
	}
	if _, err := ParseProducts("tf32"); err == nil || err.Error() != `products "tf32": want one of auto, ffma, fp16x3, fp16x3-warp, fp16x3-warpgroup` {
		t.Error(err)
	}
}
