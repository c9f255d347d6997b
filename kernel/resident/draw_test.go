package resident

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/attnb/attnb/kernel/wire"
)

// drawn is the picture of a drawing, which is kept under build/ where that is asked for.
func (c caller) drawn(d wire.Drawing, r wire.Request, in ...wire.Tensor) wire.Display {
	c.t.Helper()
	r.Kind, r.Draw, r.IDs = wire.KindDraw, &d, ids(in)
	v, err := c.Display(c.do(r).DisplayID)
	if err != nil {
		c.t.Fatal(err)
	}
	c.keep(v)
	return v
}

// keep writes the PNG of a display for people to look at: PICTURES=dir.
func (c caller) keep(v wire.Display) {
	c.t.Helper()
	for _, p := range v.Parts {
		if dir := os.Getenv("PICTURES"); dir != "" && p.MIME != "text/plain" {
			name := strings.NewReplacer("/", "-", " ", "_").Replace(c.t.Name()) + "." + filepath.Base(p.MIME)
			if err := os.WriteFile(filepath.Join(dir, name), p.Data, 0o644); err != nil {
				c.t.Fatal(err)
			}
		}
	}
}

func plainText(t *testing.T, v wire.Display) string {
	t.Helper()
	i := slices.IndexFunc(v.Parts, func(p wire.Part) bool { return p.MIME == "text/plain" })
	j := slices.IndexFunc(v.Parts, func(p wire.Part) bool { return p.MIME == "image/png" })
	if i < 0 || j < 0 || !strings.HasPrefix(string(v.Parts[j].Data), "\x89PNG") {
		t.Fatalf("no PNG, or no text: %d parts", len(v.Parts))
	}
	if !strings.Contains(string(v.Metadata), `"alt":`) {
		t.Errorf("metadata %s", v.Metadata)
	}
	return string(v.Parts[i].Data)
}

func wants(t *testing.T, got string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(got, w) {
			t.Errorf("lacks %q:\n%s", w, got)
		}
	}
}

// layer is q, k, v of 4 heads, 2 of them for keys and values, and their scores and probabilities.
func (c caller) layer(queries, keys int) (k, v, scored, p wire.Tensor) {
	q, k := c.random(1, hsd, 4, queries, 8), c.random(2, hsd, 2, keys, 8)
	scored = c.run1(wire.OpScores, causal, q, k)
	return k, c.random(3, hsd, 2, keys, 8), scored, c.run1(wire.OpSoftmax, wire.Params{}, scored)
}

func TestDrawings(t *testing.T) {
	p := onHost(t)
	each := func(name string, f func(c caller)) {
		t.Run(name, func(t *testing.T) {
			c := p.dial()
			defer c.Close()
			c.t = t
			f(c)
		})
	}
	tokens := strings.Fields(`The cat </script> "sat" on the mat`)
	each("layers", func(c caller) {
		_, _, _, soft := c.layer(7, 7)
		one := c.run1(wire.OpIndex, wire.Params{Axis: "heads", Index: 2}, soft)
		for s, quantity := range []string{"entropy (bits)", "distance (keys)", "weight on key 0"} {
			got := plainText(c.t, c.drawn(wire.Drawing{Subject: wire.SubjectLayers, Statistic: wire.Statistic(s)}, wire.Request{}, soft, one, soft))
			wants(c.t, got, "Heatmap of 3 layer x 4 head ("+quantity+")", "3 cells not there")
		}
	})
	each("statistics", func(c caller) {
		_, _, _, soft := c.layer(7, 7)
		a := c.do(wire.Request{Kind: wire.KindPicture, IDs: ids([]wire.Tensor{soft}), Draw: &wire.Drawing{Statistics: true}, Labels: tokens})
		v, err := c.Display(a.DisplayID)
		if err != nil {
			c.t.Fatal(err)
		}
		c.keep(v)
		wants(c.t, plainText(c.t, v), "head 3: entropy ", " bits, distance ", " keys, sink ")
	})
	each("gallery", func(c caller) {
		_, _, _, soft := c.layer(7, 7)
		a := c.do(wire.Request{Kind: wire.KindPicture, Style: wire.StyleGallery, IDs: ids([]wire.Tensor{soft}), Labels: tokens})
		v, err := c.Display(a.DisplayID)
		if err != nil {
			c.t.Fatal(err)
		}
		c.keep(v)
		if len(v.Parts) != 3 || v.Parts[0].MIME != "text/html" || strings.Count(string(v.Parts[0].Data), "data:image/png") != 5 {
			c.t.Errorf("%d parts", len(v.Parts))
		}
		plainText(c.t, v)
	})
	each("trace", func(c caller) {
		_, v, scored, soft := c.layer(7, 7)
		got := plainText(c.t, c.drawn(wire.Drawing{Subject: wire.SubjectTrace, Query: 4, Heads: []int{3}}, wire.Request{Labels: tokens}, scored, v))
		wants(c.t, got, "head 3, query 4 “on”. 5 charts over 7 key.", "5 of 7 keys are seen", "masked: 2 positions, first key 5 “the”", "share of the context (share)")
		most := float32(0)
		for _, x := range c.download(soft)[3*49+4*7:][:7] {
			most = max(most, x)
		}
		wants(c.t, got, fmt.Sprintf("to %.9g at", most)) // the device's own probabilities
	})
	each("window", func(c caller) {
		q, k := c.random(1, hsd, 4, 7, 8), c.random(2, hsd, 2, 7, 8)
		scored := c.run1(wire.OpScores, wire.Params{Mask: wire.MaskCausal, Window: 3}, q, k)
		got := plainText(c.t, c.drawn(wire.Drawing{Subject: wire.SubjectTrace, Query: 5, Heads: []int{0}}, wire.Request{}, scored, k))
		wants(c.t, got, "3 of 7 keys are seen", "masked: 4 positions, first key 0")
		soft := c.run1(wire.OpSoftmax, wire.Params{}, scored)
		got = plainText(c.t, c.drawn(wire.Drawing{Subject: wire.SubjectDecoding, Heads: []int{0}}, wire.Request{}, soft))
		wants(c.t, got, "31 of 49 cells masked")
		sink := 0.0
		for row := range 3 { // later ones do not see key 0
			sink += float64(c.download(soft)[row*7]) / 7
		}
		got = plainText(c.t, c.drawn(wire.Drawing{Subject: wire.SubjectLayers, Statistic: wire.StatisticSink}, wire.Request{}, c.run1(wire.OpIndex, wire.Params{Axis: "heads"}, soft)))
		wants(c.t, got, fmt.Sprintf("All %.9g.", float32(sink)))
	})
	each("variants", func(c caller) {
		q, k := c.random(1, hsd, 4, 7, 8), c.random(2, hsd, 2, 7, 8)
		hqk := []string{"heads", "query", "key"}
		bias, sinks := c.random(4, hqk, 1, 7, 7), c.upload([]string{"heads"}, []int{4}, []float32{0, 1, 2, 0.5})
		cells := make([]float32, 49)
		for i := range cells {
			if i%7 != 2 {
				cells[i] = 1
			}
		}
		allowed := c.upload(hqk, []int{1, 7, 7}, cells)
		scored := c.run1(wire.OpScores, wire.Params{Mask: wire.MaskCausal, Softcap: 2, ALiBi: true}, q, k)
		extras := wire.Params{Extras: []string{"bias", "sinks", "allowed"}}
		soft := c.run1(wire.OpSoftmax, extras, scored, bias, sinks, allowed)
		got := plainText(c.t, c.drawn(wire.Drawing{Subject: wire.SubjectTrace, Query: 5, Heads: []int{2}}, wire.Request{Params: extras}, scored, k, bias, sinks, allowed))
		row, sum := c.download(soft)[2*49+5*7:][:7], 0.0
		for _, x := range row {
			sum += float64(x)
		}
		wants(c.t, got, "6 charts over 7 key", "softcap 2, ALiBi, bias, sinks, allowed", "5 of 7 keys are seen", fmt.Sprintf("sum %.6g", sum), fmt.Sprintf("to %.9g at", slices.Max(row)))
		// Softcap, bias, then ALiBi of the usual slope, key by key.
		want := math.Inf(-1)
		for key, s := range c.download(scored)[2*49+5*7:][:7] {
			x := 2*math.Tanh(float64(s)/2) + float64(c.download(bias)[5*7+key]) - math.Exp2(-6)*math.Abs(float64(5-key))
			want = max(want, float64(float32(x)))
		}
		wants(c.t, got, fmt.Sprintf("to %.9g at", float32(want)))
		// A column that nobody may see counts for nothing.
		got = plainText(c.t, c.drawn(wire.Drawing{Subject: wire.SubjectDecoding, Heads: []int{0}}, wire.Request{}, soft))
		wants(c.t, got, "26 of 49 cells masked")
		open := c.run1(wire.OpSoftmax, wire.Params{Mask: wire.MaskNone, Extras: []string{"allowed"}}, c.random(5, hqk, 1, 2, 7), c.upload(hqk, []int{1, 2, 7}, []float32{1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0}))
		p := c.download(open)
		d := c.do(wire.Request{Kind: wire.KindPicture, IDs: ids([]wire.Tensor{open}), Draw: &wire.Drawing{Statistics: true}})
		v, err := c.Display(d.DisplayID)
		if err != nil {
			c.t.Fatal(err)
		}
		wants(c.t, plainText(c.t, v), fmt.Sprintf("sink %.1f%%", 100*p[0]))
	})
	each("decoding", func(c caller) {
		_, _, _, prompt := c.layer(4, 4)
		steps := []wire.Tensor{prompt}
		for keys := 5; keys <= 7; keys++ {
			_, _, _, one := c.layer(1, keys)
			steps = append(steps, one)
		}
		got := plainText(c.t, c.drawn(wire.Drawing{Subject: wire.SubjectDecoding}, wire.Request{Labels: tokens}, steps...))
		wants(c.t, got, "probabilities of 4 steps. 4 heatmaps on one scale, each of 7 query x 7 key", "24 of 196 cells masked. 60 cells not there.")
		got = plainText(c.t, c.drawn(wire.Drawing{Subject: wire.SubjectDecoding, Heads: []int{1}}, wire.Request{Log: true}, steps...))
		wants(c.t, got, "Heatmap of 7 query x 7 key (probability)")
	})
	each("timeline", func(c caller) {
		turned := func(rows, offset int) wire.Tensor {
			return c.run1(wire.OpRoPE, wire.Params{Rotary: 8, Offset: offset}, c.random(9, hsd, 2, rows, 8))
		}
		k := turned(5, 0)
		for _, at := range []int{5, 6, 8} { // one too far
			k = c.run1(wire.OpAppend, wire.Params{}, k, turned(1, at))
		}
		k = c.run1(wire.OpRows, wire.Params{Index: 0, Count: 6}, k)
		k = c.run1(wire.OpAppend, wire.Params{}, k, turned(2, 6))
		c.name(k, "k")
		got := plainText(c.t, c.drawn(wire.Drawing{Subject: wire.SubjectTimeline}, wire.Request{}, k))
		wants(c.t, got, "k [heads 2, seq 8, dim 8], slot by slot. Heatmap of 8 slot x 6 step (position). From 0 at slot 0, step 0 to 8 at slot 7, step 3.", "8 slots and 0 holes at the end")
		v := c.run1(wire.OpAppend, wire.Params{}, c.random(1, shd, 3, 2, 8), c.random(2, shd, 1, 2, 8))
		wants(c.t, plainText(c.t, c.drawn(wire.Drawing{Subject: wire.SubjectTimeline}, wire.Request{}, v)), "Heatmap of 4 slot x 2 step (step written)")
	})
	each("writes", func(c caller) {
		d := wire.Drawing{Subject: wire.SubjectTimeline}
		for i, slot := range []int{0, 1, 3, 3, 0} {
			d.Writes = append(d.Writes, wire.CacheWrite{Slots: []int{slot}, Positions: []int{i}})
		}
		wants(c.t, plainText(c.t, c.drawn(d, wire.Request{Text: "ring </script>"})), "ring </script>. Heatmap of 4 slot x 5 step (position). From 0 at slot 0, step 0 to 4 at slot 0, step 4", "hole in 3 cells, first at slot 2, step 2", "overwritten in 2 cells, first at slot 0, step 4", "4 slots and 1 hole at the end. 2 rows overwritten")
	})
	each("rotation", func(c caller) {
		d := wire.Drawing{Subject: wire.SubjectRotation, Rows: 16, Rotations: []wire.Params{{Rotary: 8}, {Rotary: 8, Offset: 3, Base: 500}}}
		wants(c.t, plainText(c.t, c.drawn(d, wire.Request{})), "2 heatmaps on one scale, each of 4 pair x 16 row (angle (rad))", "rotary 8, half-split, offset 3, base 500, envelope: q and k at any angle")
		d.Rotations[1].Interleaved = true
		c.t.Run("conventions", func(t *testing.T) {
			c.t = t
			wants(c.t, plainText(c.t, c.drawn(d, wire.Request{})), "each of 8 dim x 16 row")
		})
	})
	for _, show := range []wire.Difference{wire.DifferenceSigned, wire.DifferenceSteps} {
		each(fmt.Sprintf("compare %d", show), func(c caller) {
			_, _, _, soft := c.layer(7, 7)
			data := c.download(soft)
			data[2*49+5*7+3] += 0.25
			data[0] = math.Nextafter32(data[0], 2)
			a, err := c.Upload(wire.Request{Kind: wire.KindUpload, Shape: []int{4, 7, 7}, Axes: []string{"heads", "query", "key"}}, data)
			if err != nil {
				c.t.Fatal(err)
			}
			c.name(soft, "p")
			c.name(a.Tensors[0], "theirs")
			r := c.do(wire.Request{Kind: wire.KindCompare, IDs: []int{soft.ID, a.Tensors[0].ID}, Draw: &wire.Drawing{Difference: show}, Labels: tokens})
			v, err := c.Display(r.DisplayID)
			if err != nil {
				c.t.Fatal(err)
			}
			c.keep(v)
			got := plainText(c.t, v)
			wants(c.t, got, `"p" and "theirs"`, `"p" - "theirs"`, `Marked: worst by its bound, head 2, query 5 “the”, key 3 “"sat"”`)
			if r.Verdict == nil || r.Verdict.Pass {
				c.t.Errorf("verdict %+v", r.Verdict)
			}
			if show == wire.DifferenceSteps {
				wants(c.t, got, "(f32 steps)", "to 0 at")
			} else {
				wants(c.t, got, "From -0.25 at head 2, query 5")
			}
		})
		each(fmt.Sprintf("check %d", show), func(c caller) {
			_, _, scored, _ := c.layer(7, 7)
			r := c.do(wire.Request{Kind: wire.KindCheck, IDs: []int{scored.ID}, Draw: &wire.Drawing{Difference: show}})
			v, err := c.Display(r.DisplayID)
			if err != nil {
				c.t.Fatal(err)
			}
			c.keep(v)
			wants(c.t, plainText(c.t, v), "Scores and float64", "Scores - float64")
			if !r.Verdict.Pass {
				c.t.Error(r.Text)
			}
		})
	}
}

// What cannot be drawn is refused in one line that names it, and leaves no display.
func TestDrawingRefusals(t *testing.T) {
	p := onHost(t)
	c := p.dial()
	defer c.Close()
	k, v, scored, soft := c.layer(3, 5)
	c.name(scored, "s")
	c.name(soft, "p")
	two := c.random(4, []string{"heads", "query", "key"}, 2, 1, 5)
	d := func(s wire.Subject) wire.Drawing { return wire.Drawing{Subject: s} }
	at := func(query int, heads ...int) wire.Drawing {
		return wire.Drawing{Subject: wire.SubjectTrace, Query: query, Heads: heads}
	}
	for _, x := range []struct {
		d    wire.Drawing
		r    wire.Request
		in   []wire.Tensor
		want string
	}{
		{wire.Drawing{}, wire.Request{}, nil, "Draw: unknown subject 0"},
		{d(99), wire.Request{}, nil, "Draw: unknown subject 99"},
		{d(wire.SubjectLayers), wire.Request{}, nil, "Layers: 0 tensors, it takes 1 to 1024"},
		{d(wire.SubjectLayers), wire.Request{}, []wire.Tensor{soft, scored}, `Layers: scores are no probabilities: take their Softmax (layer 1: "s" [heads 4, query 3, key 5])`},
		{d(wire.SubjectLayers), wire.Request{}, []wire.Tensor{two}, "Layers: these are no probabilities: "},
		{wire.Drawing{Subject: wire.SubjectLayers, Statistic: 9}, wire.Request{}, []wire.Tensor{soft}, "Layers: unknown statistic 9"},
		{d(wire.SubjectDecoding), wire.Request{}, []wire.Tensor{soft, c.run1(wire.OpIndex, wire.Params{Axis: "heads"}, soft)}, "Decoding: step 1 has 1 heads, step 0 has 4"},
		{wire.Drawing{Subject: wire.SubjectDecoding, Heads: []int{4}}, wire.Request{}, []wire.Tensor{soft}, "Decoding: head 4 is not within 0 to 3 (step 0:"},
		{d(wire.SubjectDecoding), wire.Request{Labels: []string{"a"}}, []wire.Tensor{soft}, "Decoding: 1 tokens for 5 keys"},
		{at(0), wire.Request{}, []wire.Tensor{scored, v}, `Trace: one query of one head: pick it with OnlyHead(i) (scores: "s" [heads 4, query 3, key 5])`},
		{at(3, 0), wire.Request{}, []wire.Tensor{scored, v}, "Trace: query 3 is not within 0 to 2"},
		{at(-1, 0), wire.Request{}, []wire.Tensor{scored, v}, "Trace: query -1 is not within 0 to 2"},
		{at(0, 7), wire.Request{}, []wire.Tensor{scored, v}, "Trace: head 7 is not within 0 to 3"},
		{at(0, 0), wire.Request{}, []wire.Tensor{soft, v}, "Trace: these are no scores: attn.Scores makes them (scores: \"p\""},
		{at(0, 0), wire.Request{}, []wire.Tensor{scored, c.random(1, hsd, 2, 4, 8)}, "Trace: 4 values for 5 keys (scores: "},
		{at(0, 0), wire.Request{}, []wire.Tensor{scored, c.random(1, hsd, 3, 5, 8)}, "Trace: 4 heads are not a multiple of 3 KV heads"},
		{at(0, 0), wire.Request{Labels: []string{"a"}}, []wire.Tensor{scored, v}, "Trace: 1 tokens for 5 keys"},
		{d(wire.SubjectTimeline), wire.Request{}, nil, "Timeline: no step to draw"},
		{wire.Drawing{Subject: wire.SubjectTimeline, Writes: []wire.CacheWrite{{Slots: []int{-4}}}}, wire.Request{}, nil, "Timeline: step 0 writes slot -4"},
		{wire.Drawing{Subject: wire.SubjectTimeline, Writes: []wire.CacheWrite{{}}}, wire.Request{}, []wire.Tensor{k}, "Timeline: either a cache or its writes"},
		{d(wire.SubjectTimeline), wire.Request{}, []wire.Tensor{c.random(1, []string{"dim"}, 3)}, "Timeline: has no rows, and so no slots"},
		{d(wire.SubjectRotation), wire.Request{}, nil, "Phasors: 0 settings, must be 1 to 4"},
		{wire.Drawing{Subject: wire.SubjectRotation, Rotations: []wire.Params{{Rotary: 8}}}, wire.Request{}, nil, "Phasors: 0 rows, must be 1 to 65536"},
		{wire.Drawing{Subject: wire.SubjectRotation, Rows: 4, Rotations: []wire.Params{{Rotary: 7}}}, wire.Request{}, nil, "Phasors: "},
	} {
		x.r.Kind, x.r.Draw, x.r.IDs = wire.KindDraw, &x.d, ids(x.in)
		_, err := c.Do(x.r)
		if err == nil || !strings.HasPrefix(err.Error(), x.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v\nwant %s", err, x.want)
		}
	}
	for want, r := range map[string]wire.Request{
		`Heatmap: statistics are of probabilities, which scores are not: take their Softmax (x: "s"`: {Kind: wire.KindPicture, IDs: []int{scored.ID}, Draw: &wire.Drawing{Statistics: true}},
		`Compare: unknown difference 9`: {Kind: wire.KindCompare, IDs: []int{soft.ID, soft.ID}, Draw: &wire.Drawing{Difference: 9}},
		`Draw: no settings`:             {Kind: wire.KindDraw},
	} {
		if _, err := c.Do(r); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
	if n := c.do(wire.Request{Kind: wire.KindStatus}).Status.Displays; n != 0 {
		t.Errorf("%d displays are left", n)
	}
}
