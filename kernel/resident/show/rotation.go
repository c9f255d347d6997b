package show

import (
	"cmp"
	"fmt"

	"github.com/attnb/attnb/kernel/resident/chain"
	"github.com/attnb/attnb/kernel/resident/figure"
	"github.com/attnb/attnb/kernel/resident/store"
	"github.com/attnb/attnb/kernel/wire"
	"github.com/attnb/attnb/reference"
	"github.com/attnb/attnb/viz"
)

func drawRotation(_ *store.Client, r wire.Request, _ []store.Operand, _ []*store.Node) (viz.Drawable, error) {
	if n := len(r.Draw.Rotations); n < 1 || n > maxRotations {
		return nil, unfit("", "%d settings, must be 1 to %d", n, maxRotations)
	}
	for _, p := range r.Draw.Rotations {
		if _, err := chain.RoPEOf(p); err != nil {
			return nil, unfit("", "%v", err)
		}
	}
	return plainly(figure.Rotations(cmp.Or(r.Text, "RoPE: angle of each pair"), references(r.Draw.Rotations), rotationNames(r.Draw.Rotations), r.Draw.Rows))
}

// maxRotations bounds the settings in one picture.
const maxRotations = 4

// references are settings as the references take them.
func references(ps []wire.Params) []reference.RoPE {
	out := make([]reference.RoPE, len(ps))
	for i, p := range ps {
		out[i] = chain.ReferenceRoPE(p)
	}
	return out
}

// rotationNames are the settings in words, each once.
func rotationNames(ps []wire.Params) []string {
	names := make([]string, len(ps))
	for i, p := range ps {
		names[i] = chain.RoPEWords(p)
		for k := range i {
			if names[k] == names[i] {
				names[i] += fmt.Sprintf(" (%d)", i)
			}
		}
	}
	return names
}
