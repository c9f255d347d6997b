package trust

import (
	"fmt"

	"github.com/attnb/attnb/kernel/wire"
	"github.com/attnb/attnb/reference"
	"github.com/attnb/attnb/reference/detect"
)

// rule is what was declared of probabilities of rows queries and keys keys, of so many heads.
func (c Case) rule(heads, rows, keys int) (detect.Rule, error) {
	p := c.Params
	r := detect.Rule{Scale: p.Scale, Diagonal: keys - rows, Window: p.Window, PadLeft: p.PadLeft, PadRight: p.PadRight, Softcap: single(p.Softcap),
		Bias: c.tensor(wire.ExtraBias), Allowed: c.tensor(wire.ExtraAllowed)}
	if len(p.Documents) > 0 {
		r.Documents = p.Documents
	}
	switch p.Mask {
	case wire.MaskCausal:
		r.Causal = true
	case wire.MaskDiagonal:
		r.Causal, r.Diagonal = true, p.Diagonal
	case wire.MaskAt:
		r.Diagonal = p.Diagonal
	}
	slopes := p.Slopes
	if p.ALiBi && len(slopes) == 0 {
		var err error
		if slopes, err = reference.ALiBiSlopes(heads); err != nil {
			return r, err
		}
	}
	for _, s := range slopes {
		r.Slopes = append(r.Slopes, single(s))
	}
	for _, m := range c.tensor(wire.ExtraSinks) {
		rows, _ := m.Dims()
		for i := range rows {
			r.Sinks = append(r.Sinks, m.RawRowView(i)...)
		}
	}
	empty := c.word("empty")
	for e := detect.EmptyZero; e <= detect.EmptyUnmasked; e++ {
		if empty == e.String() {
			r.Empty, empty = e, ""
		}
	}
	if empty != "" {
		return r, fmt.Errorf("no convention for empty rows is called %q", empty)
	}
	return r, nil
}

// single is x as the device holds it.
func single(x float64) float64 { return float64(float32(x)) }
