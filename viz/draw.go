package viz

import (
	"fmt"
	"image"
)

// Picture is a rendered PNG, the size to show it at in CSS pixels (half of its own, so that it is crisp), and its description.
type Picture struct {
	PNG           []byte
	Width, Height int
	Alt           string
}

// Drawable is what this package draws: a [Heatmap], a [Plot], a [Timeline], or a [Sheet] of them.
type Drawable interface {
	// Picture renders a labelled PNG.
	Picture() (Picture, error)
	// Alt describes the picture in plain text, or says why there can be none.
	Alt() string

	draw() (drawn, error)
}

// drawn is a picture before it is encoded.
type drawn struct {
	image image.Image // of a palette, where that holds its colours
	alt   string
}

func (d drawn) picture(title string) (Picture, error) {
	encoded, err := encodePNG(d.image)
	if err != nil {
		return Picture{}, fmt.Errorf("picture %q: %w", title, err)
	}
	size := d.image.Bounds().Size()
	return Picture{encoded, size.X / density, size.Y / density, d.alt}, nil
}

func (h Heatmap) draw() (drawn, error) {
	if err := h.check(); err != nil {
		return drawn{}, err
	}
	d := h.prepare()
	return drawn{d.paint().Paletted, d.describe(d.summary)}, nil
}
