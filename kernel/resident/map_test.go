package resident

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/cudaops/host"
	"github.com/attnb/attnb/kernel/resident/show"
	"github.com/attnb/attnb/kernel/wire"
	"github.com/attnb/attnb/reference"
)

func (c caller) mapOf(p wire.Params, m wire.Map, in ...wire.Tensor) (wire.Display, error) {
	a, err := c.Do(wire.Request{Kind: wire.KindMap, IDs: ids(in), Params: p, Map: &m})
	if err != nil {
		return wire.Display{}, err
	}
	return c.Display(a.DisplayID)
}

func (c caller) live(p wire.Params, in ...wire.Tensor) *wire.LiveMap {
	c.t.Helper()
	d, err := c.mapOf(p, wire.Map{Live: true}, in...)
	if err != nil || d.Map == nil {
		c.t.Fatal(d.Map, err)
	}
	return d.Map
}

// wanted pools a window of a downloaded matrix [heads, s, t] by definition.
func wanted(t *testing.T, x []float32, head, s, keys int, sees reference.Visible, m wire.Map, rows, cols int) *mat.Dense {
	t.Helper()
	whole := mat.NewDense(s, keys, nil)
	for i := range s * keys {
		whole.Set(i/keys, i%keys, float64(x[head*s*keys+i]))
	}
	q, k := m.Queries, m.Keys
	if q == nil {
		q = []int{0, s}
	}
	if k == nil {
		k = []int{0, keys}
	}
	part := mat.DenseCopyOf(whole.Slice(q[0], q[1], k[0], k[1]))
	out, err := reference.Pool(reference.Heads{part}, func(row, col int) bool { return sees == nil || sees(row+q[0], col+k[0]) }, reference.Reduction(m.Reduce), rows, cols)
	if err != nil {
		t.Fatal(err)
	}
	return out[0]
}

// Tiles of queries and keys, and of the matrix that they make, are what the definition makes of that matrix.
func TestTiles(t *testing.T) {
	p := onHost(t)
	c := p.dial()
	defer c.Close()
	const heads, s, keys = 4, 37, 150
	q, k := c.random(1, hsd, heads, s, 16), c.random(2, hsd, 2, keys, 16)
	scored := c.run1(wire.OpScores, causal, q, k)
	soft := c.run1(wire.OpSoftmax, wire.Params{}, scored)
	maps := map[string]*wire.LiveMap{"q, k": c.live(causal, q, k), "scores": c.live(wire.Params{}, scored), "probabilities": c.live(wire.Params{}, soft)}
	if m := maps["q, k"]; m.Heads != heads || m.Queries != s || m.Keys != keys || !m.Causal || m.Diagonal != keys-s || m.Quantity != wire.QuantityProbabilities {
		t.Errorf("%+v", m)
	}
	values := map[wire.Quantity][]float32{wire.QuantityScores: c.download(scored), wire.QuantityProbabilities: c.download(soft)}
	for _, m := range []wire.Map{
		{Heads: []int{0}, Rows: 512, Cols: 512},
		{Heads: []int{3}, Rows: 10, Cols: 7},
		{Heads: []int{1}, Rows: 1, Cols: 1},
		{Heads: []int{2}, Rows: 5, Cols: 9, Queries: []int{20, 31}, Keys: []int{100, 150}},
		{Heads: []int{2}, Rows: 5, Cols: 9, Queries: []int{0, 9}, Keys: []int{140, 150}}, // masked
		{Heads: []int{2}, Rows: 1, Cols: 1, Queries: []int{36, 37}, Keys: []int{149, 150}},
	} {
		for by := wire.ReduceMax; by <= wire.ReduceMin; by++ {
			for what, all := range values {
				for name, of := range maps {
					if name != "q, k" && of.Quantity != what {
						continue
					}
					m.Reduce, m.Quantity = by, what
					got, err := c.Tile(of.ID, m)
					if err != nil {
						t.Fatal(err)
					}
					want := wanted(t, all, m.Heads[0], s, keys, reference.Causal(keys-s), m, got.Rows, got.Cols)
					compareTile(t, fmt.Sprintf("%s %+v", name, m), got, want, name != "q, k")
				}
			}
		}
	}
	for _, m := range maps {
		if err := c.Release(m.ID); err != nil {
			t.Error(err)
		}
		if _, err := c.Tile(m.ID, wire.Map{Heads: []int{0}}); err == nil || err.Error() != "this picture is no longer live: run its cell again" {
			t.Errorf("a tile after the release: %v", err)
		}
	}
}

// Tiles of every variant are what the definition makes of the matrix that Scores and Softmax make, and so are those of that matrix.
func TestTilesOfVariants(t *testing.T) {
	p := onHost(t)
	c := p.dial()
	defer c.Close()
	const heads, s, keys = 4, 37, 150
	q, k := c.random(1, hsd, heads, s, 16), c.random(2, hsd, 2, keys, 16)
	hqk := []string{"heads", "query", "key"}
	bias, sinks := c.random(3, hqk, 1, s, keys), c.random(4, []string{"heads"}, heads)
	cells := make([]float32, s*keys)
	for i := range cells {
		if i%5 != 2 && i/keys != 11 {
			cells[i] = 1
		}
	}
	allowed := c.upload(hqk, []int{1, s, keys}, cells)
	lengths := []int{120, 20, 10}
	diagonal := keys - s
	for name, test := range map[string]struct {
		p      wire.Params
		extras []wire.Tensor
		sees   reference.Visible
	}{
		"window":     {wire.Params{Mask: wire.MaskCausal, Window: 20}, nil, reference.All(reference.Causal(diagonal), reference.Window(diagonal, 20))},
		"both sides": {wire.Params{Window: 9}, nil, reference.Window(diagonal, 9)},
		"padding":    {wire.Params{Mask: wire.MaskCausal, PadLeft: 5, PadRight: 20}, nil, reference.All(reference.Causal(diagonal), reference.Padded(5, 20, keys))},
		"documents":  {wire.Params{Mask: wire.MaskCausal, Documents: lengths}, nil, reference.All(reference.Causal(diagonal), reference.Documents(diagonal, lengths))},
		"softcap":    {wire.Params{Softcap: 0.5}, nil, nil},
		"ALiBi":      {wire.Params{Mask: wire.MaskCausal, ALiBi: true}, nil, reference.Causal(diagonal)},
		"sinks":      {wire.Params{Mask: wire.MaskCausal, Extras: []string{"sinks"}}, []wire.Tensor{sinks}, reference.Causal(diagonal)},
		"bias":       {wire.Params{Mask: wire.MaskCausal, Extras: []string{"bias"}}, []wire.Tensor{bias}, reference.Causal(diagonal)},
		"allowed":    {wire.Params{Extras: []string{"allowed"}}, []wire.Tensor{allowed}, func(row, col int) bool { return cells[row*keys+col] != 0 }},
		"all together": {wire.Params{Mask: wire.MaskCausal, Window: 60, PadLeft: 90, Softcap: 2, Slopes: []float64{1, 2, 0.5, 0.25}, Extras: []string{"sinks", "bias", "allowed"}}, []wire.Tensor{sinks, bias, allowed},
			reference.All(reference.Causal(diagonal), reference.Window(diagonal, 60), reference.Padded(90, 0, keys), func(row, col int) bool { return cells[row*keys+col] != 0 })},
	} {
		numbers := test.p
		numbers.Extras = nil
		scored := c.run1(wire.OpScores, numbers, q, k)
		soft := c.run1(wire.OpSoftmax, wire.Params{Extras: test.p.Extras}, append([]wire.Tensor{scored}, test.extras...)...)
		live := c.live(test.p, append([]wire.Tensor{q, k}, test.extras...)...)
		matrix := c.live(wire.Params{}, soft)
		values := map[wire.Quantity][]float32{wire.QuantityScores: c.download(scored), wire.QuantityProbabilities: c.download(soft)}
		for i, m := range []wire.Map{
			{Heads: []int{2}, Rows: 5, Cols: 9, Queries: []int{20, 31}, Keys: []int{100, 150}},
			{Heads: []int{2}, Rows: 512, Cols: 512},
			{Heads: []int{3}, Rows: 10, Cols: 7},
			{Heads: []int{0}, Rows: 1, Cols: 1},
			{Heads: []int{1}, Rows: 3, Cols: 3, Queries: []int{9, 12}, Keys: []int{30, 33}},
		} {
			for by := wire.ReduceMax; by <= wire.ReduceMin; by++ {
				for what, all := range values {
					m.Reduce, m.Quantity = by, what
					called := fmt.Sprintf("%s %d %d %d", name, i, by, what)
					got, err := c.Tile(live.ID, m)
					if err != nil {
						t.Fatal(called, err)
					}
					want := wanted(t, all, m.Heads[0], s, keys, test.sees, m, got.Rows, got.Cols)
					compareTile(t, called, got, want, false)
					if what != wire.QuantityProbabilities {
						continue
					}
					if got, err = c.Tile(matrix.ID, m); err != nil {
						t.Fatal(called, err)
					}
					compareTile(t, called+" of the matrix", got, want, true)
				}
			}
		}
		if live.Quantity != wire.QuantityProbabilities {
			t.Errorf("%s: %+v", name, live)
		}
		for _, m := range []*wire.LiveMap{live, matrix} {
			if err := c.Release(m.ID); err != nil {
				t.Error(err)
			}
		}
	}
}

// compareTile judges a tile. What is reduced from values at hand is right to the last bit; what is computed by another way than they
// were is near. Bounds are the business of the backends' own tests.
func compareTile(t *testing.T, name string, got wire.Tile, want *mat.Dense, exact bool) {
	t.Helper()
	rows, cols := want.Dims()
	if got.Rows != rows || got.Cols != cols {
		t.Fatalf("%s: %d x %d", name, got.Rows, got.Cols)
	}
	least, most := math.Inf(1), math.Inf(-1)
	hidden := make([]bool, rows*cols)
	for i := 0; i+1 < len(got.Hidden); i += 2 {
		for at := got.Hidden[i]; at < got.Hidden[i+1]; at++ {
			hidden[at] = true
		}
	}
	for i := range rows {
		for j := range cols {
			g, w := float64(got.Values[i*cols+j]), float64(float32(want.At(i, j)))
			if exact && g != w || !(math.Abs(g-w) <= 1e-5*(math.Abs(w)+1e-3)) {
				t.Fatalf("%s: [%d, %d] is %v, want %v", name, i, j, g, w)
			}
			if !hidden[i*cols+j] {
				least, most = min(least, g), max(most, g)
			} else if g != 0 {
				t.Fatalf("%s: [%d, %d] is masked and %v", name, i, j, g)
			}
		}
	}
	if least > most {
		least, most = 0, 0
	}
	if got.Min != least || got.Max != most {
		t.Errorf("%s: from %v to %v, want %v to %v", name, got.Min, got.Max, least, most)
	}
}

// Other ways to hold the same heads make the same tile.
func TestMapOfOtherAxes(t *testing.T) {
	c := onHost(t).dial()
	defer c.Close()
	q, k := c.random(1, shd, 20, 4, 8), c.random(2, shd, 30, 2, 8)
	qh, kh := c.run1(wire.OpSwap, wire.Params{}, q), c.run1(wire.OpSwap, wire.Params{}, k)
	m := wire.Map{Heads: []int{3}, Rows: 7, Cols: 9}
	a, err := c.Tile(c.live(causal, q, k).ID, m)
	if err != nil {
		t.Fatal(err)
	}
	b, err := c.Tile(c.live(causal, qh, kh).ID, m)
	if err != nil {
		t.Fatal(err)
	}
	for i := range a.Values {
		if a.Values[i] != b.Values[i] {
			t.Fatalf("cell %d: %v and %v", i, a.Values[i], b.Values[i])
		}
	}
}

// A picture holds nothing; a live map holds what its tiles need, also when its cell and its tensors are gone, and no longer than
// until it is released.
func TestMapLifetimes(t *testing.T) {
	p := onHost(t)
	a := p.dial()
	q, k := a.random(1, hsd, 2, 40, 8), a.random(2, hsd, 1, 40, 8)
	held := p.d.InUse()
	if _, err := a.mapOf(causal, wire.Map{}, q, k); err != nil {
		t.Fatal(err)
	}
	p.settle(held)
	id := a.live(causal, q, k).ID
	p.settle(held)
	a.Close()

	b := p.dial()
	defer b.Close()
	if _, err := b.Tile(id, wire.Map{Heads: []int{1}, Rows: 4, Cols: 4}); err != nil {
		t.Error(err)
	}
	p.settle(held + 40*4) // the log of the sums, of a head that was pooled
	if err := b.Release(id); err != nil {
		t.Error(err)
	}
	p.settle(0)
	x := b.random(3, hsd, 1, 5, 5)
	first := b.live(wire.Params{}, x).ID
	for range show.MaxLive {
		b.live(wire.Params{}, x)
	}
	if _, err := b.Tile(first, wire.Map{}); err == nil {
		t.Error("more live maps than are held")
	}
}

func TestMapPicture(t *testing.T) {
	c := onHost(t).dial()
	defer c.Close()
	q, k := c.random(1, hsd, 2, 700, 8), c.random(2, hsd, 1, 1400, 8)
	small := c.random(3, hsd, 1, 4, 8)
	s := c.run1(wire.OpSoftmax, wire.Params{}, c.run1(wire.OpScores, causal, q, k))
	for _, test := range []struct {
		params wire.Params
		m      wire.Map
		more   wire.Request
		in     []wire.Tensor
		want   string
	}{
		{causal, wire.Map{Heads: []int{1}}, wire.Request{}, []wire.Tensor{q, k},
			"probabilities, causal, head 1. Heatmap of 512 query x 512 key (probability). Query 0–699, key 0–1399; pooled: each cell is the largest of up to 2 × up to 3. From "},
		{causal, wire.Map{Reduce: wire.ReduceMean, Quantity: wire.QuantityScores, Rows: 64, Cols: 64}, wire.Request{Text: "look"}, []wire.Tensor{q, k},
			"look. 2 heatmaps on one scale, each of 64 query x 64 key (score). Query 0–699, key 0–1399; pooled: each cell is the mean of up to 11 × up to 22. From "},
		{wire.Params{Mask: wire.MaskDiagonal, Diagonal: -2}, wire.Map{}, wire.Request{Log: true, Labels: []string{"a", "b", "c", "d"}}, []wire.Tensor{small, small},
			"probabilities, causal. Heatmap of 4 query x 4 key (probability). From "},
		{causal, wire.Map{Heads: []int{0}, Queries: []int{300, 310}, Keys: []int{990, 1005}}, wire.Request{}, []wire.Tensor{q, k},
			"probabilities, causal, head 0. Heatmap of 10 query x 15 key (probability). Query 300–309, key 990–1004. From "},
		{wire.Params{}, wire.Map{Heads: []int{0}, Reduce: wire.ReduceSum}, wire.Request{Log: true}, []wire.Tensor{s},
			"probabilities, head 0. Heatmap of 512 query x 512 key (probability). Query 0–699, key 0–1399; pooled: each cell is the sum of up to 2 × up to 3. From "},
	} {
		test.more.Kind, test.more.IDs, test.more.Params, test.more.Map = wire.KindMap, ids(test.in), test.params, &test.m
		d, err := c.Display(c.do(test.more).DisplayID)
		if err != nil {
			t.Fatal(err)
		}
		if len(d.Parts) != 3 || d.Parts[0].MIME != "text/html" || !strings.HasPrefix(string(d.Parts[1].Data), "\x89PNG") || !strings.HasPrefix(string(d.Parts[2].Data), test.want) {
			t.Errorf("got  %s\nwant %s", d.Parts[2].Data, test.want)
		}
	}
}

func TestMapRefuses(t *testing.T) {
	p := onHost(t)
	c := p.dial()
	defer c.Close()
	q, k, other := c.random(1, hsd, 4, 30, 8), c.random(2, hsd, 2, 50, 8), c.random(3, hsd, 3, 50, 8)
	narrow := c.random(4, hsd, 2, 50, 6)
	c.name(q, "q")
	s := c.run1(wire.OpScores, causal, q, k)
	const about = ` (q: "q" [heads 4, seq 30, dim 8], k: [heads 2, seq 50, dim 8])`
	const matrix = ` (x: [heads 4, query 30, key 50])`
	for _, test := range []struct {
		p    wire.Params
		m    wire.Map
		log  bool
		in   []wire.Tensor
		want string
	}{
		{causal, wire.Map{Queries: []int{5, 5}}, false, []wire.Tensor{q, k}, "Map: queries 5 to 5 are none" + about},
		{causal, wire.Map{Queries: []int{25, 31}}, false, []wire.Tensor{q, k}, "Map: queries 25 to 31 are not within 0 to 30" + about},
		{causal, wire.Map{Keys: []int{-1, 4}}, false, []wire.Tensor{q, k}, "Map: keys -1 to 4 are not within 0 to 50" + about},
		{causal, wire.Map{Keys: []int{4}}, false, []wire.Tensor{q, k}, "Map: 1 numbers for a range of keys" + about},
		{causal, wire.Map{Heads: []int{4}}, false, []wire.Tensor{q, k}, "Map: head 4 is not within 0 to 3" + about},
		{causal, wire.Map{Heads: []int{-1}}, false, []wire.Tensor{q, k}, "Map: head -1 is not within 0 to 3" + about},
		{causal, wire.Map{Rows: -1, Cols: 5}, false, []wire.Tensor{q, k}, "Map: a size of -1 x 5 cells, must be 1 to 2048" + about},
		{causal, wire.Map{Rows: 9, Cols: 5000}, false, []wire.Tensor{q, k}, "Map: a size of 5000 cells, must be 1 to 2048" + about},
		{causal, wire.Map{Reduce: 4}, false, []wire.Tensor{q, k}, "Map: unknown reduction 4" + about},
		{causal, wire.Map{Quantity: 3}, false, []wire.Tensor{q, k}, "Map: unknown quantity 3" + about},
		{causal, wire.Map{Quantity: wire.QuantityScores}, true, []wire.Tensor{q, k}, "Map: a logarithmic scale is for probabilities, which these values are not" + about},
		{causal, wire.Map{}, false, []wire.Tensor{q, other}, `Map: 4 heads are not a multiple of 3 KV heads (q: "q" [heads 4, seq 30, dim 8], k: [heads 3, seq 50, dim 8])`},
		{causal, wire.Map{}, false, []wire.Tensor{q, narrow}, `Map: head dims 8 and 6 differ (q: "q" [heads 4, seq 30, dim 8], k: [heads 2, seq 50, dim 6])`},
		{wire.Params{}, wire.Map{Quantity: wire.QuantityProbabilities}, false, []wire.Tensor{s}, "Map: the matrix does not hold probabilities: take its Softmax" + matrix},
		{causal, wire.Map{}, false, []wire.Tensor{s}, "Map: a matrix has its mask and its scale: they are options of Scores and Softmax" + matrix},
		{wire.Params{Scale: 1e300}, wire.Map{}, false, []wire.Tensor{q, k}, "Map: scale is +Inf, must be finite in f32" + about},
		{wire.Params{Extras: []string{"sinks"}}, wire.Map{}, false, []wire.Tensor{q, k, narrow}, "Map: must be [1 1 4], one a head (sinks: [heads 2, seq 50, dim 6])"},
		{wire.Params{Extras: []string{"bias"}}, wire.Map{}, false, []wire.Tensor{q, k, narrow}, "Map: must fit scores [4 30 50]: as many columns, and as many rows and heads or 1 (bias: [heads 2, seq 50, dim 6])"},
		{wire.Params{Slopes: []float64{1}}, wire.Map{}, false, []wire.Tensor{q, k}, "Map: 1 ALiBi slopes for 4 heads" + about},
		{wire.Params{Documents: []int{1}}, wire.Map{}, false, []wire.Tensor{q, k}, "Map: 1 documents leave 49 of 50 columns" + about},
		{wire.Params{Softcap: 3}, wire.Map{}, false, []wire.Tensor{s}, "Map: a matrix has its mask and its scale: they are options of Scores and Softmax" + matrix},
		{causal, wire.Map{}, false, nil, "Map: 0 tensors, it takes queries and keys or a matrix"},
	} {
		before := p.d.InUse()
		a, err := c.Do(wire.Request{Kind: wire.KindMap, IDs: ids(test.in), Params: test.p, Map: &test.m, Log: test.log})
		if err == nil || err.Error() != test.want || a.DisplayID != "" {
			t.Errorf("got  %v\nwant %s", err, test.want)
		}
		p.settle(before)
	}
	live := c.live(causal, q, k)
	for want, m := range map[string]wire.Map{
		"Map: a tile is of one head, not 4" + about:            {},
		"Map: queries 0 to 31 are not within 0 to 30" + about:  {Heads: []int{0}, Queries: []int{0, 31}},
		"Map: a size of 2049 cells, must be 1 to 2048" + about: {Heads: []int{0}, Rows: 2049},
	} {
		if _, err := c.Tile(live.ID, m); err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
	_, err := c.Do(wire.Request{Kind: wire.KindPicture, IDs: ids([]wire.Tensor{s}), Log: true})
	if want := "Heatmap: a logarithmic scale is for probabilities, which these values are not" + matrix; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// poolless is a backend without pooled views.
type poolless struct{ cudaops.Backend }

func (poolless) Pool(dst, q, k, lse cudaops.View, scale float32, m cudaops.Mask, by cudaops.Reduce) error {
	return fmt.Errorf("pooled views: %w", cudaops.ErrUnsupported)
}

func TestMapWithoutPool(t *testing.T) {
	p := start(t, poolless{host.New(host.Options{})})
	c := p.dial()
	defer c.Close()
	q := c.random(1, hsd, 1, 5, 4)
	held := p.d.InUse()
	_, err := c.mapOf(causal, wire.Map{Rows: 2, Cols: 2}, q, q)
	if want := "Map: pooled views: not supported here"; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	p.settle(held)
	if _, err := c.mapOf(wire.Params{}, wire.Map{}, c.run1(wire.OpScores, causal, q, q)); err != nil {
		t.Errorf("a matrix needs no such backend: %v", err)
	}
}

// A long map tells how far it is, and ends when it is interrupted.
func TestMapProgressAndInterrupt(t *testing.T) {
	t.Run("plain", func(t *testing.T) { mapInterrupted(t, causal) })
	t.Run("softcap", func(t *testing.T) { mapInterrupted(t, wire.Params{Mask: wire.MaskCausal, Softcap: 20}) })
}

func mapInterrupted(t *testing.T, params wire.Params) {
	p := onHost(t)
	a, b := p.dial(), p.dial()
	defer a.Close()
	defer b.Close()
	q := a.random(1, hsd, 1, 40000, 32)
	over := make(chan error, 1)
	go func() {
		_, err := a.Do(wire.Request{Kind: wire.KindMap, IDs: []int{q.ID, q.ID}, Params: params, Map: new(wire.Map)})
		over <- err
	}()
	last := 0.0
	for rising := 0; rising < 2; time.Sleep(time.Millisecond) {
		s, err := b.Status()
		if err != nil {
			t.Fatal(err)
		}
		if s.Done > last && s.Done < 1 && s.Running == "Map" {
			rising++
			last = s.Done
		}
		select {
		case err := <-over:
			t.Fatalf("it ended after %d steps: %v", rising, err)
		default:
		}
	}
	// An interrupt is of the op that runs: between two ops it meets none.
	for ended := false; !ended; {
		if err := b.Interrupt(); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-over:
			ended = true
			if err == nil || err.Error() != "Map: interrupted" {
				t.Errorf("error %v", err)
			}
		case <-time.After(2 * time.Millisecond):
		}
	}
	p.settle(40000 * 32 * 4)
}
