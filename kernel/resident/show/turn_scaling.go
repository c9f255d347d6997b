package show

import (
	"fmt"

	"github.com/attnb/attnb/kernel/resident/store"
	"github.com/attnb/attnb/kernel/wire"
)

// scalings are the kinds of a rotation's scaling, as a list shows them, in the order of their numbers.
var scalings = []string{wire.ScalingNone: "none", wire.ScalingLinear: "linear", wire.ScalingDynamicNTK: "dynamic NTK", wire.ScalingLlama3: "llama3", wire.ScalingYaRN: "YaRN"}

// usualFactor stretches a rotation that was recorded without a scaling, to as many rows as there are from a part of them.
const usualFactor = 4

// scaling is which kind stretches the rotation. A kind that was not recorded takes the numbers of the one that was, or the usual ones.
func (k *knob) scaling(steps []*store.Node) error {
	for _, n := range steps {
		if n.Params.InvFreq != nil {
			return fmt.Errorf("%q turns nothing: the frequencies were given one by one", k.Name)
		}
	}
	k.Options = scalings
	return k.of("RoPE", steps, func(n *store.Node) float64 { return float64(scalingOf(n.Params).Kind) }, func(p *wire.Params, n *store.Node, v float64) {
		kind, recorded := wire.ScalingKind(v), scalingOf(n.Params)
		if kind == wire.ScalingNone {
			p.Scaling = nil
			return
		}
		s := wire.Scaling{Kind: kind, Factor: recorded.Factor, Trained: recorded.Trained, Length: recorded.Length}
		rows := max(1, n.Rows())
		if s.Factor == 0 {
			s.Factor = usualFactor
		}
		if s.Trained == 0 {
			s.Trained = max(1, int(float64(rows)/s.Factor))
		}
		if s.Length == 0 {
			s.Length = max(1, p.Offset+rows)
		}
		switch kind {
		case recorded.Kind:
			s = recorded
		case wire.ScalingLlama3:
			s.Low, s.High = 1, 4
		}
		p.Scaling = &s
	})
}

// factor is by how much the scaling stretches, of steps that were recorded with one.
func (k *knob) factor(steps []*store.Node) error {
	var scaled []*store.Node
	for _, n := range steps {
		if scalingOf(n.Params).Kind != wire.ScalingNone {
			scaled = append(scaled, n)
		}
	}
	err := k.of("scaled RoPE", scaled, func(n *store.Node) float64 { return scalingOf(n.Params).Factor }, func(p *wire.Params, _ *store.Node, v float64) {
		if p.Scaling != nil { // else another control took it away
			s := *p.Scaling
			s.Factor = v
			p.Scaling = &s
		}
	})
	k.From, k.To = 1, max(64, k.Value)
	return err
}

func scalingOf(p wire.Params) wire.Scaling {
	if p.Scaling == nil {
		return wire.Scaling{}
	}
	return *p.Scaling
}
