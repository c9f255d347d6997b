package spec

import (
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"strings"
)

// The logo is a causal attention pattern: a triangle of cells, brighter where a query looks.

const (
	logoSize = 64
	logoCell = 10 // with a gap of 1
	logoRows = 6
)

// logoWeights are the attention weights of the picture, query by query, in percent.
var logoWeights = [logoRows][]int{{100}, {55, 45}, {15, 25, 60}, {70, 5, 10, 15}, {10, 65, 5, 5, 15}, {20, 5, 50, 5, 5, 15}}

// logoColor goes from night blue over teal to yellow.
func logoColor(weight int) color.RGBA {
	stops := [3][3]int{{48, 34, 110}, {32, 150, 140}, {250, 220, 60}}
	w := min(weight, 70) * 2 * 100 / 70 // 0 to 200
	i := min(w/100, 1)
	part := w - 100*i
	mix := func(c int) uint8 { return uint8(stops[i][c] + (stops[i+1][c]-stops[i][c])*part/100) }
	return color.RGBA{mix(0), mix(1), mix(2), 255}
}

func eachLogoCell(draw func(x, y int, c color.RGBA)) {
	const margin = (logoSize - logoRows*logoCell + 1) / 2
	for row, weights := range logoWeights {
		for col, weight := range weights {
			draw(margin+col*logoCell, margin+row*logoCell, logoColor(weight))
		}
	}
}

func writeLogoPNG(w io.Writer) error {
	img := image.NewRGBA(image.Rect(0, 0, logoSize, logoSize))
	eachLogoCell(func(x, y int, c color.RGBA) {
		draw.Draw(img, image.Rect(x, y, x+logoCell-1, y+logoCell-1), image.NewUniform(c), image.Point{}, draw.Src)
	})
	return png.Encode(w, img)
}

func logoSVG() string {
	var svg strings.Builder
	fmt.Fprintf(&svg, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d">`+"\n", logoSize, logoSize)
	eachLogoCell(func(x, y int, c color.RGBA) {
		fmt.Fprintf(&svg, `<rect x="%d" y="%d" width="%d" height="%[3]d" fill="#%02x%02x%02x"/>`+"\n", x, y, logoCell-1, c.R, c.G, c.B)
	})
	return svg.String() + "</svg>\n"
}
