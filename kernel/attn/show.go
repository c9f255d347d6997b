package attn

import (
	"fmt"

	"github.com/attnb/attnb/kernel/wire"
)

// ViewOption is a setting of a picture. One that does not belong to the call that it is given to stops the cell.
type ViewOption struct{ set func(*wire.Request) }

// Tokens labels the rows and columns that stand for tokens: those of the axes query, key and seq that have as many. Where none has, the cell
// stops.
func Tokens(labels ...string) ViewOption {
	return ViewOption{func(r *wire.Request) { r.Labels = labels }}
}

// Title is what a picture is called, instead of the tensor's name.
func Title(title string) ViewOption { return ViewOption{func(r *wire.Request) { r.Text = title }} }

func (x Tensor) view(kind wire.Kind, style wire.PictureStyle, options []ViewOption) wire.Answer {
	return view(kind, style, options, x)
}

func view(kind wire.Kind, style wire.PictureStyle, options []ViewOption, xs ...Tensor) wire.Answer {
	r := wire.Request{Kind: kind, Style: style}
	for _, x := range xs {
		r.IDs = append(r.IDs, x.t.ID)
	}
	for _, o := range options {
		if o.set != nil {
			o.set(&r)
		}
	}
	check(r)
	a := do(r)
	publish(a.Text, a.DisplayID) // text beside the picture: within a display no front end shows it
	return a
}

// check stops the cell where an option belongs to something else.
func check(r wire.Request) {
	if r.Within != 0 && r.Kind != wire.KindCompare {
		stop("Within is an option of Compare alone")
	}
	if len(r.Controls) > 0 && r.Kind != wire.KindExplore {
		stop("the control " + r.Controls[0].Name + " belongs to Explore")
	}
	checkDrawing(r)
	if r.Expected != 0 && r.Kind != wire.KindExplore {
		stop("Expected is an option of Explore")
	}
	if r.Map != nil && r.Kind != wire.KindMap {
		stop("pools, sizes, heads and windows are options of Map")
	}
	if r.Map != nil && r.Map.Rows < 0 {
		stop("Size: must be at least 1")
	}
	if r.Log && r.Kind != wire.KindMap && r.Kind != wire.KindPicture && (r.Kind != wire.KindDraw || r.Draw.Subject != wire.SubjectDecoding) {
		stop("Log is an option of Map, Heatmap, Interactive and Decoding")
	}
}

// Heatmap shows the values as a labelled picture, each head a panel. Masked cells have a colour of their own.
func (x Tensor) Heatmap(options ...ViewOption) { x.view(wire.KindPicture, wire.StylePNG, options) }

// Interactive shows the values as a chart that tells each one under the pointer. Matrices beyond 64 x 64 are pooled, and zoom as a
// [Tensor.Map] does.
func (x Tensor) Interactive(options ...ViewOption) {
	x.view(wire.KindPicture, wire.StyleHTML, options)
}

// Verdict is what a check found.
type Verdict struct {
	Pass          bool    // every cell lies within its bound, and RelL2 within LimitL2
	Cells, Failed int     // compared, and outside
	MaxRatio      float64 // largest error / bound
	MaxAbs        float64 // largest |error|
	MaxRel        float64 // largest |error / reference|
	MaxULP        float64 // largest error in f32 steps
	RelL2         float64 // root of the sum of squared errors over that of squared references
	LimitL2       float64 // what RelL2 may be: a few times what roundings make on average
	Report        string  // the text that the check shows
}

// Check computes the tensor again in float64, from the values that its chain of calls began with, and compares each cell with a
// bound on what f32 arithmetic may be off by, and all cells together with what it is off by on average. It shows the verdict, the
// worst cell, the chain, and error / bound as a picture. Of a large tensor it samples rows, and says so. A tensor that was brought, not
// computed, has nothing to check, nor has one whose origin was freed: these stop the cell.
func (x Tensor) Check(options ...ViewOption) Verdict {
	a := x.view(wire.KindCheck, 0, options)
	if a.Verdict == nil {
		stop("Check: the device process gave no verdict")
	}
	return verdict(a)
}

func verdict(a wire.Answer) Verdict {
	v := a.Verdict
	return Verdict{v.Pass, v.Cells, v.Failed, v.MaxRatio, v.MaxAbs, v.MaxRel, v.MaxULP, v.RelL2, v.LimitL2, a.Text}
}

// Within widens the tolerance of Compare by an absolute amount, the same for every cell: for expected values that are less
// accurate than f32 arithmetic need be, as those of a framework that computes angles or softmax its own way.
func Within(abs float64) ViewOption { return ViewOption{func(r *wire.Request) { r.Within = abs }} }

// Compare shows how far mine is from expected, cell by cell. The tolerance of a cell is what f32 arithmetic may be off by over the
// calls that made mine, and the same of expected (one rounding of what was brought from outside), and what Within adds. Both must
// have one shape; axes of the same names in another order, as [seq, heads, dim] and [heads, seq, dim], are put in order. [Differences] and
// [ULP] show both sides.
func Compare(mine, expected Tensor, options ...ViewOption) Verdict {
	a := view(wire.KindCompare, 0, options, mine, expected)
	if a.Verdict == nil {
		stop("Compare: the device process gave no verdict")
	}
	return verdict(a)
}

// Passed says whether every cell lies within its bound and all together within theirs.
func (v Verdict) Passed() bool { return v.Pass }

// String is "pass: error/bound 0.0587 over 324 cells", or FAIL with what is wrong.
func (v Verdict) String() string {
	if v.Pass {
		return fmt.Sprintf("pass: error/bound %.3g over %d cells", v.MaxRatio, v.Cells)
	}
	if v.Failed == 0 {
		return fmt.Sprintf("FAIL: relative L2 error %.3g, limit %.3g", v.RelL2, v.LimitL2)
	}
	return fmt.Sprintf("FAIL: error/bound %.3g, %d of %d cells", v.MaxRatio, v.Failed, v.Cells)
}

// Finding is something that passes or does not, and says why: a [Verdict], or a [Diagnosis] and what has one in it.
type Finding interface {
	Passed() bool
	String() string
}

// Require stops the cell where a finding does not pass: Require(out.Check()). So a notebook is a test.
func Require(f Finding) {
	if !f.Passed() {
		stop("Require: " + f.String())
	}
}

// Show puts data of any MIME type on the page, in its place among what the cell prints: Show("image/png", png).
func Show(mime string, data []byte) {
	d := &wire.Display{Parts: []wire.Part{{MIME: mime, Data: data}}}
	publish("", do(wire.Request{Kind: wire.KindShow, Display: d}).DisplayID)
}
