package attn

import "github.com/attnb/attnb/kernel/wire"

// Explore shows the values as a picture with controls beside it. Each change of a control runs again, in the device process,
// the calls that made x, with the parameter that the control sets, and the picture follows: also long after the
// cell has ended.
//
//	attn.Explore(s.Softmax())
//	attn.Explore(s.Softmax(), attn.Dial("offset", -64, 64), attn.Choice("pairing"))
//	attn.Explore(attn.Prefill(q, k, v), attn.Expected(ctx)) // turn until the second picture is white
//
// Without a control it gets all that turn anything in the chain. [Title] and [Tokens] work as in a Heatmap. Below the picture stands the
// Go line that makes what is shown, to be copied.
//
// What the chain needs stays in memory as long as the picture is live: until its cell runs again, or 64 others came after it.
// A page needs ipywidgets and anywidget for the controls. Without them, in an export, in a notebook that is not trusted, and in one
// that is opened again without its kernel there is the picture as it was made.
func Explore(x Tensor, options ...ViewOption) { x.view(wire.KindExplore, 0, options) }

// Expected puts a second picture beside the one of Explore: the error against t, cell by cell, which goes white where they agree, and
// the relative L2 error in words. t has the shape of x; axes of the same names in another order are put in order.
func Expected(t Tensor) ViewOption {
	return ViewOption{func(r *wire.Request) {
		if t.t.ID == 0 {
			stop("Expected: not a tensor: it was declared but never made")
		}
		r.Expected = t.t.ID
	}}
}

// Dial is a slider of Explore:
//
//	offset    position of the first row, in RoPE
//	shift     more of it: a number to type
//	rotary    dims that turn, in RoPE
//	base      base of the frequencies, in RoPE
//	factor    of the scaling of frequencies, where a rotation has one
//	scale     factor of q.k
//	mask      none or causal
//	diagonal  of the causal mask: query i sees keys up to i+diagonal
//	window    keys that a query sees, where there is a [Window]
//	softcap   of the scores, where there is a [Softcap]
//	head      the one to look at
//
// "query offset" turns queries alone, "key offset" keys, "common offset" all; so do shift, rotary, base, scaling, factor and pairing. "offset"
// alone is that of the queries where x comes from scores, since these depend only on the distance of query and key,
// and do not move when both do; the others alone are those of both.
func Dial[N ~int | ~float64](parameter string, from, to N) ViewOption {
	return control(wire.Control{Name: parameter, From: float64(from), To: float64(to)})
}

// Choice is a control of Explore for a parameter in its usual range. Of pairing (half-split or interleaved), scaling (of
// RoPE: none, linear, dynamic NTK, llama3, YaRN), layout (of a fused row) and head it is a list.
func Choice(parameter string) ViewOption { return control(wire.Control{Name: parameter}) }

func control(c wire.Control) ViewOption {
	return ViewOption{func(r *wire.Request) { r.Controls = append(r.Controls, c) }}
}
