package detect

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/attnb/attnb/reference"
	"gonum.org/v1/gonum/mat"
)

// count is a matrix of 0, 1, 2, ...
func count(rows, dim int) *mat.Dense {
	m := mat.NewDense(rows, dim, nil)
	for i := range rows * dim {
		m.Set(i/dim, i%dim, float64(i))
	}
	return m
}

// Pythia's projection read as GPT-2's: the shapes agree, the channels do not.
func TestLayoutFlatSplitOfNeoX(t *testing.T) {
	rows := count(1, 12)
	neoX := one([]float64{2, 3}, []float64{8, 9})
	k := reference.Heads{matrix(neoX[0].RawRowView(0)), matrix(neoX[0].RawRowView(1))}
	f := must[LayoutFinding](t)(Layout(t.Context(), rows, Fused{Layout: reference.GPT2, Heads: 2, Dim: 2}, Parts{K: k}))
	if !f.Faults.Has(WrongLayout) || f.Fits[0].Shards != 2 || !strings.Contains(f.String(), "NeoX (q k v of each head), declared GPT2") {
		t.Error(f)
	}
	f = must[LayoutFinding](t)(Layout(t.Context(), rows, Fused{Layout: reference.NeoX, Heads: 2, Dim: 2}, Parts{K: k}))
	if f.Faults != nil {
		t.Error(f)
	}
}

// Falcon's rows: each KV group's queries, then its key, then its value.
func TestLayoutGrouped(t *testing.T) {
	rows := count(1, 8)
	want := Parts{
		Q: reference.Heads{matrix([]float64{0}), matrix([]float64{1}), matrix([]float64{4}), matrix([]float64{5})},
		K: reference.Heads{matrix([]float64{2}), matrix([]float64{6})},
		V: reference.Heads{matrix([]float64{3}), matrix([]float64{7})},
	}
	f := must[LayoutFinding](t)(Layout(t.Context(), rows, Fused{Layout: reference.Grouped, Heads: 4, KVHeads: 2, Dim: 1}, want))
	if f.Faults != nil {
		t.Error(f)
	}
	f = must[LayoutFinding](t)(Layout(t.Context(), rows, Fused{Layout: reference.GPT2, Heads: 4, KVHeads: 2, Dim: 1}, want))
	if !f.Faults.Has(WrongLayout) || !strings.Contains(f.String(), "Grouped") {
		t.Error(f)
	}
}

// arranged is a fused row of known parts under an arrangement: the inverse of what the detective does.
func arranged(a Arrangement, q, k, v reference.Heads) *mat.Dense {
	count, dim := q[0].Dims()
	rows := mat.NewDense(count, (len(q)+2*len(k))*dim, nil)
	for name, x := range map[byte]reference.Heads{'q': q, 'k': k, 'v': v} {
		for h := range x {
			for i := range dim {
				for row := range count {
					rows.Set(row, a.column(name, h, i, dim), x[h].At(row, i))
				}
			}
		}
	}
	return rows
}

// geometry is a random declaration, and parts that fit it.
func geometry(r random) (d Fused, q, k, v reference.Heads) {
	d.KVHeads = r.between(1, 4)
	d.Heads = d.KVHeads * r.between(1, 3)
	d.Dim = r.between(1, 9)
	d.Layout = pick(r, reference.GPT2, reference.Grouped)
	if d.Heads == d.KVHeads && r.IntN(2) == 0 {
		d.Layout = reference.NeoX
	}
	rows := r.between(1, 6)
	return d, r.heads(d.Heads, rows, d.Dim), r.heads(d.KVHeads, rows, d.Dim), r.heads(d.KVHeads, rows, d.Dim)
}

// repeated is k for each query head.
func repeated(x reference.Heads, heads int, tiled bool) reference.Heads {
	out := make(reference.Heads, heads)
	for h := range out {
		out[h] = x[Arrangement{heads: heads, kvHeads: len(x), Tiled: tiled}.keyHead(h)]
	}
	return out
}

// flatMerge is M1's: no transposition before the reshape.
func flatMerge(x reference.Heads, way int) *mat.Dense {
	rows, dim := x[0].Dims()
	out := mat.NewDense(rows, len(x)*dim, nil)
	for h := range x {
		for row := range rows {
			for i := range dim {
				flat := (h*rows+row)*dim + i
				r, c := flat/(len(x)*dim), flat%(len(x)*dim)
				if way == mergeDimMajor {
					r, c = row, i*len(x)+h
				}
				out.Set(r, c, x[h].At(row, i))
			}
		}
	}
	return out
}

// parts gives the detective a random choice of what is known.
func parts(t *testing.T, r random, q, k, v reference.Heads) Parts {
	context := must[reference.Heads](t)(reference.Attention(q, k, v, 1/math.Sqrt(float64(dimOf(q))), reference.Causal(0)))
	context = rounded(context, Float32)
	switch r.IntN(6) {
	case 0:
		return Parts{Q: q, K: k, V: v}
	case 1:
		return Parts{K: k, V: v}
	case 2:
		return Parts{Q: q}
	case 3:
		return Parts{K: repeated(k, len(q), false), V: repeated(v, len(q), false)}
	case 4:
		return Parts{Context: context}
	}
	return Parts{Merged: must[*mat.Dense](t)(reference.Merge(context))}
}

func dimOf(x reference.Heads) int { _, dim := x[0].Dims(); return dim }

func TestLayoutSilent(t *testing.T) {
	for trial := range right(20) {
		r := seeded(1, trial)
		d, q, k, v := geometry(r)
		f, err := Layout(t.Context(), arranged(declaredArrangement(d), q, k, v), d, parts(t, r, q, k, v))
		if err != nil || f.Faults != nil {
			t.Fatalf("trial %d: %+v: %v, %v", trial, d, f, err)
		}
	}
}

func TestLayoutPlanted(t *testing.T) {
	for name, plant := range map[string]struct {
		kind Kind
		do   func(r random, a *Arrangement) bool // false: not possible here
	}{
		"layout": {WrongLayout, func(_ random, a *Arrangement) bool {
			if a.kvHeads == 1 {
				return false
			}
			if a.Shards == 1 {
				a.Shards = a.kvHeads
			} else {
				a.Shards = 1
			}
			return true
		}},
		"order": {WrongOrder, func(r random, a *Arrangement) bool { a.Order = pick(r, "qvk", "kqv", "kvq", "vqk", "vkq"); return true }},
		"dims": {DimMajorHeads, func(r random, a *Arrangement) bool {
			a.Major = pick(r, DimMajorPart, DimMajorShard, DimMajorRow)
			if a.Shards == 1 && a.Major == DimMajorRow { // which is the same
				a.Major = DimMajorShard
			}
			return a.Major != DimMajorPart || a.heads > a.Shards // one head has no order
		}},
		"pairs": {PermutedHead, func(r random, a *Arrangement) bool { a.Permute = pick(r, toPairs, toHalves); return true }},
	} {
		t.Run(name, func(t *testing.T) {
			var found rate
			for trial := 0; found.all < planted(20); trial++ {
				r := seeded(2, trial)
				d, q, k, v := geometry(r)
				wrong := declaredArrangement(d)
				if name == "pairs" && (d.Dim%2 == 1 || d.Dim == 2) || !plant.do(r, &wrong) {
					continue
				}
				f := must[LayoutFinding](t)(Layout(t.Context(), arranged(wrong, q, k, v), d, Parts{Q: q, K: k, V: v}))
				found.count(explains(f, wrong, plant.kind, d), "trial %d %+v %v: %v", trial, d, wrong, f)
			}
			found.atLeast(t, 0.95)
		})
	}
}

// explains says whether the truth is in the tie set, and the fault named by one explanation in it, or there is no fault.
func explains(f LayoutFinding, truth Arrangement, kind Kind, d Fused) bool {
	in, named := false, false
	for _, c := range f.Fits {
		in = in || c.Arrangement == truth
		faults := c.faults(declaredArrangement(d), d)
		named = named || faults.Has(kind) || len(faults) == 0
	}
	return in && named
}

func TestLayoutTiledAndMerged(t *testing.T) {
	var tiled, merged rate
	for trial := 0; tiled.all < planted(20); trial++ {
		r := seeded(3, trial)
		d, q, k, v := geometry(r)
		if d.KVHeads == 1 || d.KVHeads == d.Heads {
			continue // tiling and repeating are one
		}
		d.Layout = reference.Grouped
		truth := declaredArrangement(d)
		truth.Tiled = true
		rows := arranged(declaredArrangement(d), q, k, v)
		want := Parts{K: repeated(k, d.Heads, true), V: repeated(v, d.Heads, true)}
		context := must[reference.Heads](t)(reference.Attention(q, want.K, want.V, 1/math.Sqrt(float64(d.Dim)), reference.Causal(0)))
		if r.IntN(2) == 0 {
			want = Parts{Context: context}
		}
		f := must[LayoutFinding](t)(Layout(t.Context(), rows, d, want))
		tiled.count(explains(f, truth, TiledKV, d), "trial %d %+v: %v", trial, d, f)

		truth = declaredArrangement(d)
		truth.Merge = pick(r, mergeFlat, mergeDimMajor)
		context = must[reference.Heads](t)(reference.Attention(q, k, v, 1/math.Sqrt(float64(d.Dim)), reference.Causal(0)))
		f = must[LayoutFinding](t)(Layout(t.Context(), rows, d, Parts{Merged: flatMerge(context, truth.Merge)}))
		merged.count(explains(f, truth, WrongMerge, d), "trial %d %+v: %v", trial, d, f)
	}
	tiled.atLeast(t, 0.95)
	merged.atLeast(t, 0.95)
}

// What repeat and tile make of two KV heads for four.
func TestLayoutRepeatNotTile(t *testing.T) {
	d := Fused{Layout: reference.Grouped, Heads: 4, KVHeads: 2, Dim: 1}
	rows := count(1, 8)
	right := reference.Heads{matrix([]float64{2}), matrix([]float64{2}), matrix([]float64{6}), matrix([]float64{6})}
	tile := reference.Heads{matrix([]float64{2}), matrix([]float64{6}), matrix([]float64{2}), matrix([]float64{6})}
	if f := must[LayoutFinding](t)(Layout(t.Context(), rows, d, Parts{K: right})); f.Faults != nil {
		t.Error(f)
	}
	if f := must[LayoutFinding](t)(Layout(t.Context(), rows, d, Parts{K: tile})); f.Faults.kinds() != string(TiledKV) {
		t.Error(f)
	}
}

func TestLayoutNoneFits(t *testing.T) {
	r := seeded(4, 0)
	d := Fused{Layout: reference.NeoX, Heads: 3, Dim: 4}
	f := must[LayoutFinding](t)(Layout(t.Context(), r.matrix(5, 36), d, Parts{Q: r.heads(3, 5, 4)}))
	if !f.Faults.Has(UnknownLayout) || len(f.Fits) != 0 || !strings.Contains(f.String(), "no layout fits: the nearest of") {
		t.Error(f)
	}
	nan := r.heads(3, 5, 4)
	nan[1].Set(2, 2, math.NaN())
	f = must[LayoutFinding](t)(Layout(t.Context(), r.matrix(5, 36), d, Parts{Q: nan}))
	if !f.Faults.Has(UnknownLayout) {
		t.Error(f)
	}
}

// One head: GPT-2, NeoX and grouped are the same, and the tie says so.
func TestLayoutTie(t *testing.T) {
	r := seeded(5, 0)
	d := Fused{Layout: reference.NeoX, Heads: 1, KVHeads: 1, Dim: 1}
	q, k, v := r.heads(1, 3, 1), r.heads(1, 3, 1), r.heads(1, 3, 1)
	f := must[LayoutFinding](t)(Layout(t.Context(), arranged(declaredArrangement(d), q, k, v), d, Parts{Q: q}))
	if f.Faults != nil || !f.Tie() || !strings.Contains(f.String(), "a tie of") {
		t.Error(f)
	}
}

func TestLayoutRefusals(t *testing.T) {
	r := seeded(6, 0)
	d := Fused{Layout: reference.NeoX, Heads: 3, Dim: 4}
	rows := r.matrix(5, 36)
	for _, c := range []struct {
		rows *mat.Dense
		want Parts
		kind error
		text string
	}{
		{rows, Parts{}, ErrTooLittle, "detect: Layout: too little data: needs at least one of q, k, v, context or merged to compare with"},
		{rows, Parts{Q: zeros(shape{3, 5, 4})}, ErrTooLittle, "detect: Layout: too little data: what was expected is 0 everywhere; needs at least one row that is not"},
		{rows, Parts{Q: r.heads(2, 5, 4)}, reference.ErrShape, "detect: Layout: shapes do not fit: q [2, 5, 4] is not [3, 5, 4]"},
		{rows, Parts{Merged: r.matrix(5, 11)}, reference.ErrShape, "detect: Layout: shapes do not fit: merged [5, 11] is not [5, 12]"},
		{r.matrix(5, 35), Parts{Q: r.heads(3, 5, 4)}, reference.ErrShape, "detect: Layout: reference: Split: shapes do not fit: rows [5, 35] are not 3+2*3 heads of dim 4"},
		{nil, Parts{Q: r.heads(3, 5, 4)}, reference.ErrShape, "detect: Layout: reference: Split: shapes do not fit: rows: head 0 is empty"},
	} {
		if _, err := Layout(t.Context(), c.rows, d, c.want); err == nil || err.Error() != c.text || !errors.Is(err, c.kind) {
			t.Errorf("%v\nwant %s", err, c.text)
		}
	}
}

// Merging two heads of two rows without transposing puts both rows of head 0 first; caches kept by rows or by heads differ alike.
func TestOrder(t *testing.T) {
	x := reference.Heads{matrix([]float64{1, 2}, []float64{3, 4}), matrix([]float64{5, 6}, []float64{7, 8})}
	f := must[AxesFinding](t)(Order(x, []float64{1, 2, 5, 6, 3, 4, 7, 8}, SeqHeadsDim, Float32))
	if f.Faults != nil || len(f.Fits) != 1 {
		t.Error(f)
	}
	f = must[AxesFinding](t)(Order(x, []float64{1, 2, 3, 4, 5, 6, 7, 8}, SeqHeadsDim, Float32))
	if f.String() != "order of axes: it is heads seq dim, declared seq heads dim; transpose before the reshape" {
		t.Error(f)
	}
	f = must[AxesFinding](t)(Order(x, []float64{1, 2, 3, 4, 5, 6, 8, 7}, SeqHeadsDim, Float32))
	if f.String() != "order of axes: no order of axes fits; compare the values themselves" {
		t.Error(f)
	}
	if _, err := Order(x, []float64{1}, SeqHeadsDim, Float32); !errors.Is(err, reference.ErrShape) {
		t.Error(err)
	}
	if _, err := Order(zeros(shape{1, 2, 2}), make([]float64, 4), SeqHeadsDim, Float32); !errors.Is(err, ErrTooLittle) {
		t.Error(err)
	}
}

func TestOrderRandom(t *testing.T) {
	all := []Axes{HeadsSeqDim, SeqHeadsDim, HeadsDimSeq, SeqDimHeads, DimHeadsSeq, DimSeqHeads}
	var found rate
	for trial := range right(20) {
		r := seeded(7, trial)
		s := shape{r.between(1, 5), r.between(1, 6), r.between(1, 9)}
		x, truth, declared := r.heads(s.heads, s.rows, s.dim), pick(r, all...), pick(r, all...)
		flat := make([]float64, s.heads*s.rows*s.dim)
		for h := range x {
			for row := range s.rows {
				for i := range s.dim {
					flat[truth.index(s, h, row, i)] = x[h].At(row, i)
				}
			}
		}
		if f := must[AxesFinding](t)(Order(x, flat, truth, Float32)); f.Faults != nil {
			t.Fatalf("trial %d: %v", trial, f)
		}
		f := must[AxesFinding](t)(Order(x, flat, declared, Float32))
		in := false
		for _, axes := range f.Fits {
			in = in || axes == truth
		}
		found.count(in, "trial %d: %v", trial, f)
	}
	found.atLeast(t, 0.95)
}

// More rows than are looked at, merged in each way: read on without a transposition, the first merged rows are one head's.
func TestLayoutMergedLong(t *testing.T) {
	r := seeded(16, 0)
	d := Fused{Layout: reference.GPT2, Heads: 3, KVHeads: 3, Dim: 4}
	rows := r.matrix(100, 3*3*4)
	q, k, v, err := reference.Split(rows, reference.GPT2, 3, 3, 4)
	if err != nil {
		t.Fatal(err)
	}
	context := must[reference.Heads](t)(reference.Attention(q, k, v, 0.5, reference.Causal(0)))
	right := must[*mat.Dense](t)(reference.Merge(context))
	flat, dimMajor := mat.NewDense(100, 12, nil), mat.NewDense(100, 12, nil)
	for h := range 3 {
		for row := range 100 {
			for i := range 4 {
				at := (h*100+row)*4 + i
				flat.Set(at/12, at%12, context[h].At(row, i))
				dimMajor.Set(row, i*3+h, context[h].At(row, i))
			}
		}
	}
	for _, c := range []struct {
		merged *mat.Dense
		words  string
	}{{right, ""}, {flat, "[H, S, d] was read as [S, H d]"}, {dimMajor, "[S, d, H] was read as [S, H d]"}} {
		f := must[LayoutFinding](t)(Layout(t.Context(), rows, d, Parts{Merged: c.merged}))
		if (c.words != "") != f.Faults.Has(WrongMerge) || !strings.Contains(f.String(), c.words) || len(f.Fits) == 0 {
			t.Errorf("want %q: %v", c.words, f)
		}
	}
}
