package attn_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/attnb/attnb/kernel/wire"
)

// Maps of queries and keys, of a window, and of a matrix; what they show is in their words.
func TestMap(t *testing.T) {
	k := newKernel(t)
	k.good("load")
	r := k.good("map")
	if r.out != "<display><display><display><display>" {
		t.Fatalf("printed %q", r.out)
	}
	for i, want := range []string{
		"probabilities, causal. 4 heatmaps on one scale, each of 4 query x 4 key (probability). Query 0–8, key 0–8; pooled: each cell is the mean of up to 3 × up to 3. From ",
		"part. Heatmap of 6 query x 3 key (score). Query 2–7, key 0–2. From ",
		"probabilities. 4 heatmaps on one scale, each of 3 query x 3 key (probability). Query 0–8, key 0–8; pooled: each cell is the sum of 3 × 3. From ",
		"probabilities. 4 heatmaps on one scale, each of 9 query x 9 key (probability). From ",
	} {
		at := slices.IndexFunc(r.displays[i].Parts, func(p wire.Part) bool { return p.MIME == "text/plain" })
		if got := string(r.displays[i].Parts[at].Data); !strings.HasPrefix(got, want) {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// A cell leaves pictures that follow their controls after it has ended.
func TestExplore(t *testing.T) {
	k := newKernel(t)
	k.good("load")
	r := k.good("explore")
	if r.out != "<display><display>" {
		t.Fatalf("printed %q", r.out)
	}
	asked := r.displays[0]
	want := []wire.Control{
		{Name: "offset", Label: "query offset", From: -64, To: 64, Step: 1},
		{Name: "base", Label: "base", From: 500, To: 1e6, Value: 1e4},
		{Name: "pairing", Label: "pairing", Options: []string{"half-split", "interleaved"}, To: 1, Step: 1},
	}
	if diff := cmp.Diff(want, asked.Exploration.Controls); diff != "" {
		t.Errorf("controls (-want +got):\n%s", diff)
	}
	if n := len(r.displays[1].Exploration.Controls); n != 11 {
		t.Errorf("%d controls that turn anything, want 11", n)
	}
	for i, c := range want {
		again, err := k.conn.Rerun(asked.Exploration.ID, []wire.Control{{Name: c.Name, Value: c.Value + 1}})
		if err != nil {
			t.Fatal(err)
		}
		if i != 1 && bytes.Equal(again.Parts[0].Data, asked.Parts[0].Data) {
			t.Errorf("%s moves nothing", c.Name)
		}
	}
}
