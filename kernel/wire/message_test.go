package wire

import (
	"bytes"
	"io"
	"math"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// Empty and nil are the same on the wire; NaN travels.
var same = cmp.Options{cmpopts.EquateEmpty(), cmp.Comparer(func(a, b float64) bool {
	return math.Float64bits(a) == math.Float64bits(b)
})}

func drawTensor(t *rapid.T) Tensor {
	return Tensor{
		ID: rapid.Int().Draw(t, "id"), Name: rapid.String().Draw(t, "name"),
		Shape: rapid.SliceOf(rapid.Int()).Draw(t, "shape"), Axes: rapid.SliceOf(rapid.String()).Draw(t, "axes"),
		Made: rapid.String().Draw(t, "made"), Cell: rapid.Int().Draw(t, "cell"), Empty: rapid.Int().Draw(t, "empty"),
	}
}

func drawParams(t *rapid.T) Params {
	var scaling *Scaling
	if rapid.Bool().Draw(t, "scaled") {
		scaling = &Scaling{
			Kind: ScalingKind(rapid.Uint8().Draw(t, "scaling")), Factor: rapid.Float64().Draw(t, "factor"), Trained: rapid.Int().Draw(t, "trained"),
			Length: rapid.Int().Draw(t, "length"), Low: rapid.Float64().Draw(t, "low"), High: rapid.Float64().Draw(t, "high"),
			Fractional: rapid.Bool().Draw(t, "fractional"),
		}
	}
	return Params{
		Scaling: scaling, Window: rapid.Int().Draw(t, "window"), PadLeft: rapid.Int().Draw(t, "left"), PadRight: rapid.Int().Draw(t, "right"),
		Documents: rapid.SliceOf(rapid.Int()).Draw(t, "documents"), Softcap: rapid.Float64().Draw(t, "softcap"),
		ALiBi: rapid.Bool().Draw(t, "alibi"), Slopes: rapid.SliceOf(rapid.Float64()).Draw(t, "slopes"),
		Extras: rapid.SliceOf(rapid.String()).Draw(t, "extras"), FirstSink: rapid.Int().Draw(t, "sink"),
		Layout: Layout(rapid.Uint8().Draw(t, "layout")), Heads: rapid.Int().Draw(t, "heads"), KVHeads: rapid.Int().Draw(t, "kv"),
		Rotary: rapid.Int().Draw(t, "rotary"), Base: rapid.Float64().Draw(t, "base"), Interleaved: rapid.Bool().Draw(t, "inter"),
		Offset: rapid.Int().Draw(t, "offset"), Positions: rapid.SliceOf(rapid.Int()).Draw(t, "positions"),
		InvFreq: rapid.SliceOf(rapid.Float64()).Draw(t, "invfreq"), Float32Angles: rapid.Bool().Draw(t, "f32"),
		Magnitude: rapid.Float64().Draw(t, "magnitude"), Scale: rapid.Float64().Draw(t, "scale"),
		Mask: Mask(rapid.Uint8().Draw(t, "mask")), Diagonal: rapid.Int().Draw(t, "diagonal"),
		Index: rapid.Int().Draw(t, "index"), Count: rapid.Int().Draw(t, "count"),
		Axis: rapid.String().Draw(t, "axis"), Axes: rapid.SliceOf(rapid.String()).Draw(t, "axes"),
		Tokens: rapid.SliceOf(rapid.Int()).Draw(t, "tokens"), Eps: rapid.Float64().Draw(t, "eps"),
	}
}

func drawRequest(t *rapid.T) Request {
	text := rapid.String()
	var show *Display
	if rapid.Bool().Draw(t, "show") {
		show = &Display{Parts: []Part{{text.Draw(t, "mime"), rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")}}}
	}
	var pooled *Map
	if rapid.Bool().Draw(t, "map") {
		m := drawMap(t)
		pooled = &m
	}
	var drawing *Drawing
	if rapid.Bool().Draw(t, "draw") {
		d := drawDrawing(t)
		drawing = &d
	}
	var question *Question
	if rapid.Bool().Draw(t, "question") {
		question = &Question{Topic: text.Draw(t, "topic"), Roles: rapid.SliceOf(text).Draw(t, "roles"), Settings: drawFacts(t)}
	}
	return Request{
		Question: question, Draw: drawing, Map: pooled, Log: rapid.Bool().Draw(t, "log"),
		Display: show, Kind: Kind(rapid.Uint8().Draw(t, "kind")), Number: rapid.Int().Draw(t, "number"), Name: text.Draw(t, "name"),
		Names: rapid.SliceOf(text).Draw(t, "names"),
		Hash:  text.Draw(t, "hash"), Path: text.Draw(t, "path"), Member: text.Draw(t, "member"), Text: text.Draw(t, "text"),
		IDs: rapid.SliceOf(rapid.Int()).Draw(t, "ids"), Shape: rapid.SliceOf(rapid.Int()).Draw(t, "shape"),
		Axes: rapid.SliceOf(text).Draw(t, "axes"), Labels: rapid.SliceOf(text).Draw(t, "labels"),
		Style: PictureStyle(rapid.Uint8().Draw(t, "style")), Op: Op(rapid.Uint8().Draw(t, "op")), Params: drawParams(t),
		Controls: rapid.SliceOfN(rapid.Custom(drawControl), 0, 3).Draw(t, "controls"),
		DataLen:  rapid.Int().Draw(t, "data"), Within: rapid.Float64().Draw(t, "within"),
	}
}

func drawDrawing(t *rapid.T) Drawing {
	n, ns, small := rapid.Int(), rapid.SliceOf(rapid.Int()), rapid.Uint8()
	write := rapid.Custom(func(t *rapid.T) CacheWrite {
		return CacheWrite{Trim: rapid.Bool().Draw(t, "trim"), Length: n.Draw(t, "length"), Slots: ns.Draw(t, "slots"), Positions: ns.Draw(t, "positions")}
	})
	return Drawing{
		Subject: Subject(small.Draw(t, "subject")), Statistic: Statistic(small.Draw(t, "statistic")), Statistics: rapid.Bool().Draw(t, "statistics"),
		Difference: Difference(small.Draw(t, "difference")), Heads: ns.Draw(t, "heads"), Query: n.Draw(t, "query"), Rows: n.Draw(t, "rows"),
		Rotations: rapid.SliceOfN(rapid.Custom(drawParams), 0, 3).Draw(t, "rotations"), Writes: rapid.SliceOfN(write, 0, 3).Draw(t, "writes"),
	}
}

func drawFacts(t *rapid.T) []Fact {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Fact {
		return Fact{Name: rapid.String().Draw(t, "name"), Numbers: rapid.SliceOf(rapid.Float64()).Draw(t, "numbers"), Words: rapid.SliceOf(rapid.String()).Draw(t, "words")}
	}), 0, 3).Draw(t, "facts")
}

func drawMap(t *rapid.T) Map {
	n, ns := rapid.Int(), rapid.SliceOf(rapid.Int())
	return Map{
		Quantity: Quantity(rapid.Uint8().Draw(t, "quantity")), Reduce: Reduce(rapid.Uint8().Draw(t, "reduce")), Heads: ns.Draw(t, "heads"),
		Queries: ns.Draw(t, "queries"), Keys: ns.Draw(t, "keys"), Rows: n.Draw(t, "rows"), Cols: n.Draw(t, "cols"), Live: rapid.Bool().Draw(t, "live"),
	}
}

func drawControl(t *rapid.T) Control {
	f := rapid.Float64()
	return Control{
		Name: rapid.String().Draw(t, "control"), Label: rapid.String().Draw(t, "label"),
		Options: rapid.SliceOf(rapid.String()).Draw(t, "options"), From: f.Draw(t, "from"), To: f.Draw(t, "to"),
		Step: f.Draw(t, "step"), Value: f.Draw(t, "value"), Typed: rapid.Bool().Draw(t, "typed"),
	}
}

func drawAnswer(t *rapid.T) Answer {
	text, blob := rapid.String(), rapid.SliceOf(rapid.Byte())
	part := rapid.Custom(func(t *rapid.T) Part { return Part{MIME: text.Draw(t, "mime"), Data: blob.Draw(t, "data")} })
	a := Answer{
		Code: Code(rapid.Uint8().Draw(t, "code")), Message: text.Draw(t, "message"), Number: rapid.Int().Draw(t, "number"),
		Text: text.Draw(t, "text"), Tensors: rapid.SliceOfN(rapid.Custom(drawTensor), 0, 3).Draw(t, "tensors"),
		DisplayID: text.Draw(t, "display id"), DataLen: rapid.Int().Draw(t, "data"),
	}
	if rapid.Bool().Draw(t, "display") {
		a.Display = &Display{Parts: rapid.SliceOfN(part, 0, 3).Draw(t, "parts"), Metadata: blob.Draw(t, "metadata"), Code: text.Draw(t, "code"),
			UpdateID: text.Draw(t, "update"), Replaces: rapid.Bool().Draw(t, "replaces")}
		if rapid.Bool().Draw(t, "live map") {
			n := rapid.Int()
			a.Display.Map = &LiveMap{ID: n.Draw(t, "id"), Heads: n.Draw(t, "heads"), Queries: n.Draw(t, "queries"), Keys: n.Draw(t, "keys"),
				Quantity: Quantity(rapid.Uint8().Draw(t, "quantity")), Causal: rapid.Bool().Draw(t, "causal"), Diagonal: n.Draw(t, "diagonal"), Shown: drawMap(t)}
		}
		if rapid.Bool().Draw(t, "exploration") {
			a.Display.Exploration = &Exploration{ID: rapid.Int().Draw(t, "id"),
				Controls: rapid.SliceOfN(rapid.Custom(drawControl), 0, 3).Draw(t, "controls")}
		}
	}
	if rapid.Bool().Draw(t, "verdict") {
		f := rapid.Float64()
		a.Verdict = &Verdict{Pass: rapid.Bool().Draw(t, "pass"), Cells: rapid.Int().Draw(t, "cells"), Failed: rapid.Int().Draw(t, "failed"),
			MaxRatio: f.Draw(t, "ratio"), MaxAbs: f.Draw(t, "abs"), MaxRel: f.Draw(t, "rel"), MaxULP: f.Draw(t, "ulp"),
			RelL2: f.Draw(t, "l2"), LimitL2: f.Draw(t, "limit")}
	}
	if rapid.Bool().Draw(t, "model") {
		n := rapid.Int()
		weights := rapid.Custom(func(t *rapid.T) ModelWeights {
			return ModelWeights{Weight: text.Draw(t, "weight"), Bias: text.Draw(t, "bias"), InOut: rapid.Bool().Draw(t, "in out")}
		})
		layer := rapid.Custom(func(t *rapid.T) ModelLayer {
			return ModelLayer{Heads: n.Draw(t, "heads"), KVHeads: n.Draw(t, "kv"), HeadDim: n.Draw(t, "dim"), Scale: rapid.Float64().Draw(t, "scale"),
				Window: n.Draw(t, "window"), Layout: Layout(rapid.Uint8().Draw(t, "layout")), QKV: weights.Draw(t, "qkv"), Q: weights.Draw(t, "q"),
				K: weights.Draw(t, "k"), V: weights.Draw(t, "v"), Out: weights.Draw(t, "out"), Rotation: drawParams(t),
				Norm: ModelNorm{Weight: text.Draw(t, "norm"), Bias: text.Draw(t, "shift"), RMS: rapid.Bool().Draw(t, "rms"), Eps: rapid.Float64().Draw(t, "eps")}}
		})
		a.Model = &Model{Family: text.Draw(t, "family"), Weights: text.Draw(t, "weights"), Hidden: n.Draw(t, "hidden"), Positions: n.Draw(t, "positions"),
			Layers: rapid.SliceOfN(layer, 0, 3).Draw(t, "layers")}
	}
	if rapid.Bool().Draw(t, "tile") {
		n, ns, f := rapid.Int(), rapid.SliceOf(rapid.Int()), rapid.Float64()
		a.Tile = &Tile{Head: n.Draw(t, "head"), Rows: n.Draw(t, "rows"), Cols: n.Draw(t, "cols"), Queries: ns.Draw(t, "queries"), Keys: ns.Draw(t, "keys"),
			Hidden: ns.Draw(t, "hidden"), Min: f.Draw(t, "min"), Max: f.Draw(t, "max")}
	}
	if rapid.Bool().Draw(t, "finding") {
		fault := rapid.Custom(func(t *rapid.T) Fault {
			return Fault{text.Draw(t, "kind"), text.Draw(t, "detail"), text.Draw(t, "fix")}
		})
		a.Finding = &Finding{Pass: rapid.Bool().Draw(t, "pass"), Sentence: text.Draw(t, "sentence"), Faults: rapid.SliceOfN(fault, 0, 3).Draw(t, "faults"), Facts: drawFacts(t)}
	}
	if rapid.Bool().Draw(t, "call") {
		a.Call = &Call{ID: rapid.Int().Draw(t, "call id"), Numbers: rapid.SliceOf(rapid.Int()).Draw(t, "numbers")}
	}
	if rapid.Bool().Draw(t, "turned") {
		c := drawControl(t)
		a.Control = &c
	}
	if rapid.Bool().Draw(t, "status") {
		a.Status = &Status{Backend: text.Draw(t, "backend"), Device: text.Draw(t, "device"), InUse: rapid.Int().Draw(t, "in use"),
			Total: rapid.Int().Draw(t, "total"), Tensors: rapid.Int().Draw(t, "n"), Displays: rapid.Int().Draw(t, "d"), PID: rapid.Int().Draw(t, "pid"),
			Running: text.Draw(t, "running"), RunningFor: rapid.Int().Draw(t, "for"), Done: rapid.Float64().Draw(t, "done"), Waiting: rapid.Int().Draw(t, "waiting")}
	}
	return a
}

func TestRoundTrip(t *testing.T) {
	t.Run("request", rapid.MakeCheck(func(t *rapid.T) {
		want := drawRequest(t)
		got, err := DecodeRequest(want.Encode())
		if diff := cmp.Diff(want, got, same); err != nil || diff != "" {
			t.Fatalf("error %v, difference (-sent +received):\n%s", err, diff)
		}
	}))
	t.Run("answer", rapid.MakeCheck(func(t *rapid.T) {
		want := drawAnswer(t)
		got, err := DecodeAnswer(want.Encode())
		if diff := cmp.Diff(want, got, same); err != nil || diff != "" {
			t.Fatalf("error %v, difference (-sent +received):\n%s", err, diff)
		}
	}))
}

// Every proper prefix that still decodes must be one that ends between fields: cutting inside a field is an error.
func TestDecodeTruncated(t *testing.T) {
	whole := (&Request{Kind: KindRun, IDs: []int{1, 2}, Axes: []string{"heads"}, Op: OpRoPE, Params: Params{Rotary: 8}}).Encode()
	good := 0
	for n := range whole {
		if _, err := DecodeRequest(whole[:n]); err == nil {
			good++
		}
	}
	if good != 5 { // nothing, and after each of kind, IDs, axes, op
		t.Errorf("%d prefixes of %d bytes decode, want 5", good, len(whole))
	}
}

// A count larger than the bytes that are there is refused before anything is allocated for it.
func TestDecodeHostileCounts(t *testing.T) {
	for _, tag := range []byte{3, 8, 9, 10, 11, 14} {
		body := []byte{tag, 0xff, 0xff, 0xff, 0x7f, 1, 2, 3}
		allocs := testing.AllocsPerRun(10, func() {
			if _, err := DecodeRequest(body); err == nil {
				t.Errorf("tag %d: accepted", tag)
			}
		})
		if allocs > 6 {
			t.Errorf("tag %d: %v allocations", tag, allocs)
		}
	}
}

func FuzzDecodeRequest(f *testing.F) {
	f.Add((&Request{Kind: KindLoad, Path: "/x.npz", Member: "qkv", Axes: []string{"seq", "hidden"}}).Encode())
	f.Add((&Request{Kind: KindRun, IDs: []int{7}, Op: OpRoPE, Params: Params{Rotary: 8, Positions: []int{3}, InvFreq: []float64{1}}}).Encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := DecodeRequest(b)
		if err != nil {
			return
		}
		again, err := DecodeRequest(r.Encode())
		if diff := cmp.Diff(r, again, same); err != nil || diff != "" {
			t.Fatalf("error %v, %s", err, diff)
		}
	})
}

func FuzzDecodeAnswer(f *testing.F) {
	f.Add((&Answer{Tensors: []Tensor{{ID: 1, Shape: []int{2}, Axes: []string{"seq"}}}, DataLen: 8}).Encode())
	f.Add((&Answer{Display: &Display{Parts: []Part{{"image/png", []byte("x")}}}, Verdict: &Verdict{Pass: true}, Status: &Status{PID: 1}}).Encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := DecodeAnswer(b)
		if err != nil {
			return
		}
		again, err := DecodeAnswer(a.Encode())
		if diff := cmp.Diff(a, again, same); err != nil || diff != "" {
			t.Fatalf("error %v, %s", err, diff)
		}
	})
}

// oneByte returns a byte a read, as a socket may.
type oneByte struct{ r io.Reader }

func (o oneByte) Read(p []byte) (int, error) { return o.r.Read(p[:min(len(p), 1)]) }

func TestFrames(t *testing.T) {
	for _, size := range []int{0, 1, 255, chunk - 1, chunk, chunk + 1, 3*chunk + 7} {
		body := bytes.Repeat([]byte{0xa5}, size)
		var stream bytes.Buffer
		if err := WriteFrame(&stream, body); err != nil {
			t.Fatal(err)
		}
		var r io.Reader = bytes.NewReader(stream.Bytes())
		if size < 1000 {
			r = oneByte{r}
		}
		got, err := ReadFrame(r)
		if err != nil || !bytes.Equal(got, body) {
			t.Errorf("size %d: %d bytes, %v", size, len(got), err)
		}
		if _, err := ReadFrame(r); err != io.EOF {
			t.Errorf("size %d: at the end %v, want EOF", size, err)
		}
		if size > 0 {
			cut := bytes.NewReader(stream.Bytes()[:stream.Len()-1])
			if _, err := ReadFrame(cut); err != io.ErrUnexpectedEOF {
				t.Errorf("size %d cut: %v, want ErrUnexpectedEOF", size, err)
			}
		}
	}
	if err := WriteFrame(io.Discard, make([]byte, MaxFrame+1)); err == nil {
		t.Error("wrote a frame over its limit")
	}
	if _, err := ReadFrame(bytes.NewReader([]byte{0xff, 0xff, 0xff, 0xff})); err == nil {
		t.Error("read a frame over its limit")
	}
}

// A header that promises 64 MiB and delivers nothing costs one chunk.
func TestFrameCommitsNoMemoryAhead(t *testing.T) {
	head := []byte{0, 0, 0, 4}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := ReadFrame(bytes.NewReader(head)); err != io.ErrUnexpectedEOF {
		t.Fatalf("error %v, want ErrUnexpectedEOF", err)
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 2*chunk {
		t.Errorf("%d bytes allocated", got)
	}
}

func TestFloats(t *testing.T) {
	for _, n := range []int{0, 1, 37, chunk / 4, chunk/4 + 1, chunk} {
		want := make([]float32, n)
		for i := range want {
			want[i] = math.Float32frombits(uint32(i) * 2654435761) // all kinds of bits, NaN too
		}
		got, err := ReadFloats(bytes.NewReader(FloatBytes(want)), 4*n)
		if err != nil || !bytes.Equal(FloatBytes(got), FloatBytes(want)) {
			t.Errorf("n %d: differs, %v", n, err)
		}
		back := make([]float32, n)
		decodeFloats(back, FloatBytes(want))
		if !bytes.Equal(FloatBytes(back), FloatBytes(want)) {
			t.Errorf("n %d: decodeFloats differs", n)
		}
	}
	for _, n := range []int{-4, 3} {
		if _, err := ReadFloats(bytes.NewReader(make([]byte, 8)), n); err == nil {
			t.Errorf("read %d bytes", n)
		}
	}
	if _, err := ReadFloats(bytes.NewReader(make([]byte, 7)), 8); err != io.ErrUnexpectedEOF {
		t.Errorf("short: %v", err)
	}
}
