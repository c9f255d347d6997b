package attn_test

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/attnb/attnb/kernel/wire"
)

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
	if n := len(r.displays[1].Exploration.Controls); n != 5 {
		t.Errorf("%d usual controls, want 5", n)
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
