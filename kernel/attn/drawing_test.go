package attn_test

import (
	"strings"
	"testing"
)

// Every other kind of picture, as a cell makes it: a PNG each, whose words say what it shows.
func TestDrawings(t *testing.T) {
	k := newKernel(t)
	k.good("load")
	r := k.good("drawings")
	want := [][]string{
		{"probabilities. 4 heatmaps on one scale, each of 9 query x 9 key", "head 0: entropy ", " bits, distance ", " keys, sink ", "“</script>”"},
		{"probabilities. 4 heatmaps on one scale, each of 9 query x 9 key"},
		{"Mean share of key 0 of each head. Heatmap of 2 layer x 4 head (weight on key 0).", "3 cells not there."},
		{"head 2, query 5 “f”. 5 charts over 9 key.", "6 of 9 keys are seen."},
		{"run. Heatmap of 6 query x 6 key (probability).", "3 of 36 cells masked. 12 cells not there."},
		{", slot by slot. Heatmap of 5 slot x 2 step (position). From 0 at slot 0, step 0 to 4 at slot 4, step 1. 1 cell not there."},
		{"KV cache. Heatmap of 4 slot x 3 step (position).", "hole in 2 cells, first at slot 2, step 1. overwritten in 1 cell, first at slot 0, step 2."},
		{"2 heatmaps on one scale, each of 8 dim x 12 row (angle (rad)).", "rotary 8, half-split, offset 0, base 10000, q and k all ones"},
		{"Softmax and neox_a.npz: probs.", "Softmax - neox_a.npz: probs.", "Marked: worst by its bound"},
		{"Softmax - float64", "(f32 steps)"},
	}
	if len(r.displays) != len(want) {
		t.Fatalf("%d displays, want %d", len(r.displays), len(want))
	}
	for i, d := range r.displays {
		parts := map[string]string{}
		for _, p := range d.Parts {
			parts[p.MIME] = string(p.Data)
		}
		if !strings.HasPrefix(parts["image/png"], "\x89PNG") {
			t.Errorf("display %d is no PNG", i)
		}
		if html := parts["text/html"]; (html != "") != (i == 1) || i == 1 && (!strings.Contains(html, "attnb-gallery") || len(html) > 1<<20) {
			t.Errorf("display %d has %d bytes of HTML", i, len(html))
		}
		for _, w := range want[i] {
			if !strings.Contains(parts["text/plain"], w) {
				t.Errorf("display %d lacks %q:\n%s", i, w, parts["text/plain"])
			}
		}
	}
}
