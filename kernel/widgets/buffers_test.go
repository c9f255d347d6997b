package widgets

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// value draws a state's value with binary ones in it.
func value(t *rapid.T, depth int) any {
	kinds := 4
	if depth > 0 {
		kinds = 6
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0:
		return rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")
	case 1:
		return rapid.String().Draw(t, "string")
	case 2:
		return float64(rapid.IntRange(-9, 9).Draw(t, "number"))
	case 3:
		return nil
	case 4:
		list := make([]any, rapid.IntRange(0, 3).Draw(t, "length"))
		for i := range list {
			list[i] = value(t, depth-1)
		}
		return list
	}
	return table(t, depth)
}

func table(t *rapid.T, depth int) map[string]any {
	out := map[string]any{}
	for range rapid.IntRange(0, 3).Draw(t, "entries") {
		out[rapid.StringMatching(`[a-c]{1,2}`).Draw(t, "key")] = value(t, depth-1)
	}
	return out
}

// What is taken apart, sent as JSON and put together again is what it was.
func TestSplitJoin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := table(t, 4)
		rest, paths, buffers := split(want)
		if len(paths) != len(buffers) {
			t.Fatalf("%d paths, %d buffers", len(paths), len(buffers))
		}
		text, err := json.Marshal(map[string]any{"state": rest, "paths": paths})
		if err != nil {
			t.Fatal(err)
		}
		var got struct {
			State map[string]any
			Paths [][]any
		}
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		if err := join(got.State, got.Paths, buffers); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got.State, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("difference (-sent +received):\n%s", diff)
		}
	})
}
