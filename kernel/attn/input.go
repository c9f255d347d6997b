package attn

import (
	"os"

	"github.com/attnb/attnb/kernel/wire"
)

// Input is a control of a cell's own: it is on the page, and its values come to the cell, while the cell runs.
type Input[T any] struct {
	in   *wire.Input
	last T
	read func(float64) T
}

// Slider puts a slider on the page, over whole numbers.
//
//	for gain := range attn.Slider("gain", 0, 10, 3).Values() {
//		fmt.Println("gain", gain)
//	}
//
// The loop runs until the cell is interrupted or breaks it, or a page closes the control. Cells after it wait until then. A control that should
// work when its cell has ended is one of [Explore].
func Slider(label string, from, to, value int) *Input[int] {
	c := wire.Control{Name: label, From: float64(from), To: float64(to), Step: 1, Value: float64(value)}
	return open(c, value, func(v float64) int { return int(v) })
}

// Menu puts a list of options on the page; the first is chosen. It works as a [Slider] does.
func Menu(label string, options ...string) *Input[string] {
	if len(options) == 0 {
		stop("Menu: no options")
	}
	c := wire.Control{Name: label, Options: options}
	return open(c, options[0], func(v float64) string { return options[int(v)] })
}

func open[T any](c wire.Control, first T, read func(float64) T) *Input[T] {
	connect() // which stops a cell that is in no notebook
	in, err := wire.OpenInput(os.Getenv(wire.EnvControls), os.Getenv(wire.EnvNonce), c)
	if err != nil {
		stop(err.Error())
	}
	if in.Model != "" {
		d := &wire.Display{Parts: []wire.Part{
			{MIME: "application/vnd.jupyter.widget-view+json", Data: []byte(`{"version_major":2,"version_minor":0,"model_id":"` + in.Model + `"}`)},
			{MIME: "text/plain", Data: []byte(c.Name + ": a control that its cell hears while it runs")},
		}}
		publish("", do(wire.Request{Kind: wire.KindShow, Display: d}).DisplayID)
	}
	return &Input[T]{in, first, read}
}

// Values goes over the values of the control: the one it has, then each to which it is turned. While the loop's body runs, values
// that another one follows are left out. Of a cell that a program runs, as nbconvert does, it is the first value alone. Several
// controls have a loop each, in goroutines of their own.
func (x *Input[T]) Values() func(yield func(T) bool) {
	return func(yield func(T) bool) {
		for yield(x.last) {
			value, ok, err := x.in.Next()
			if err != nil {
				stop(err.Error())
			}
			if !ok {
				return
			}
			x.last = x.read(value)
		}
	}
}
