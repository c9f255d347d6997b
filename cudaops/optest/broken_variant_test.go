package optest

import (
	"testing"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/cudaops/host"
)

// changing is a backend that takes other changes than it was given, or gives another result.
type changing struct {
	cudaops.Backend
	wrong func(c *cudaops.Changes)
	count func(n int) int
	after func(b cudaops.Backend, dst, lse cudaops.View) error
}

func (f changing) end(n int, err error, dst, lse cudaops.View) (int, error) {
	if f.count != nil {
		n = f.count(n)
	}
	if err == nil && f.after != nil {
		err = f.after(f.Backend, dst, lse)
	}
	return n, err
}

func (f changing) SoftmaxChanged(dst, src cudaops.View, c cudaops.Changes) (int, error) {
	if f.wrong != nil {
		f.wrong(&c)
	}
	n, err := f.Backend.SoftmaxChanged(dst, src, c)
	return f.end(n, err, dst, cudaops.View{})
}

func (f changing) PrefillChanged(dst, lse, q, k, v cudaops.View, scale float32, c cudaops.Changes) (int, error) {
	if f.wrong != nil {
		f.wrong(&c)
	}
	n, err := f.Backend.PrefillChanged(dst, lse, q, k, v, scale, c)
	return f.end(n, err, dst, lse)
}

var changingFaults = map[string]changing{
	"window one too wide":   {wrong: func(c *cudaops.Changes) { c.Mask.Window++ }},
	"window without itself": {wrong: func(c *cudaops.Changes) { c.Mask.Window = max(1, c.Mask.Window-1) }},
	"window dropped":        {wrong: func(c *cudaops.Changes) { c.Mask.Window = 0 }},
	"window on one side":    {wrong: func(c *cudaops.Changes) { c.Mask.Causal = c.Mask.Causal || c.Mask.Window > 0 }},
	"padding dropped":       {wrong: func(c *cudaops.Changes) { c.Mask.PadLeft = 0 }},
	"padding on the other":  {wrong: func(c *cudaops.Changes) { c.Mask.PadLeft, c.Mask.PadRight = c.Mask.PadRight, c.Mask.PadLeft }},
	"documents dropped":     {wrong: func(c *cudaops.Changes) { c.Mask.Documents = nil }},
	"mask top-left":         {wrong: func(c *cudaops.Changes) { c.Mask.Diagonal = 0 }},
	"softcap dropped":       {wrong: func(c *cudaops.Changes) { c.Softcap = 0 }},
	"softcap 1% off":        {wrong: func(c *cudaops.Changes) { c.Softcap *= 1.01 }},
	"slopes dropped":        {wrong: func(c *cudaops.Changes) { c.Slopes = nil }},
	"slopes of other heads": {wrong: func(c *cudaops.Changes) {
		c.Slopes = append(c.Slopes[min(1, len(c.Slopes)):len(c.Slopes):len(c.Slopes)], c.Slopes...)
	}},
	"bias dropped":           {wrong: func(c *cudaops.Changes) { c.Bias = cudaops.View{} }},
	"bias of the first row":  {wrong: func(c *cudaops.Changes) { c.Bias.RowStride = 0 }},
	"bias of the first head": {wrong: func(c *cudaops.Changes) { c.Bias.HeadStride = 0 }},
	"allowed dropped":        {wrong: func(c *cudaops.Changes) { c.Allowed = cudaops.View{} }},
	"allowed of the last row": {wrong: func(c *cudaops.Changes) {
		c.Allowed.Offset += (c.Allowed.S - 1) * c.Allowed.RowStride
		c.Allowed.RowStride = 0
	}},
	"sinks dropped":          {wrong: func(c *cudaops.Changes) { c.Sinks = cudaops.View{} }},
	"empty rows not counted": {count: func(int) int { return 0 }},
	"ends in 0": {after: func(b cudaops.Backend, dst, _ cudaops.View) error {
		return poke(b, dst, 0)
	}},
	"LSE without its last row": {after: func(b cudaops.Backend, _, lse cudaops.View) error {
		if lse.Mem == nil {
			return nil
		}
		return poke(b, lse, -1)
	}},
}

// failingVariants are the small cases of variants that a device fails.
func failingVariants(d *cudaops.Device) []string {
	d = poisoned(d)
	var names []string
	for _, c := range append(variantCases(), knownVariants()...) {
		if c.truth = c.expect; c.size() <= smallCase && c.check(d, placements[0]) != nil {
			names = append(names, c.name)
		}
	}
	return names
}

func TestSuiteFailsBrokenVariants(t *testing.T) {
	if names := failingVariants(cudaops.NewDevice(host.New(host.Options{}))); len(names) > 0 {
		t.Fatalf("the sound backend fails %v", names)
	}
	for name, fault := range changingFaults {
		t.Run(name, func(t *testing.T) {
			fault.Backend = host.New(host.Options{})
			names := failingVariants(cudaops.NewDevice(fault))
			if len(names) == 0 {
				t.Error("passes the suite")
			}
			t.Logf("fails %d: %v", len(names), names[:min(3, len(names))])
		})
	}
}
