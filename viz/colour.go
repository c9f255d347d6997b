package viz

import (
	"fmt"
	"image/color"
	"math"
)

// Colour maps are curves in OKLab (B. Ottosson, "A perceptual color space for image processing", 2020), walked at even
// perceptual distance, so that equal steps of a value look equally large. Lightness is monotone on either side of a
// scale's centre, which is what the colour-blind, and grey printers, go by.

// steps is the number of colours of a map in a palette picture.
const steps = 144

// lch is a colour in OKLab's polar form: lightness 0..1, chroma, hue in degrees.
type lch struct{ l, c, h float64 }

var (
	// purple over blue and green to yellow: lightness rises from end to end
	sequential = curve(steps, lch{0.22, 0.11, 305}, lch{0.36, 0.125, 280}, lch{0.5, 0.105, 238}, lch{0.62, 0.105, 190},
		lch{0.74, 0.15, 155}, lch{0.85, 0.175, 122}, lch{0.945, 0.165, 106})
	// blue, near white, red-brown: the pair that red-green blindness keeps apart
	diverging = append(
		curve(steps/2, lch{0.33, 0.115, 258}, lch{0.5, 0.13, 252}, lch{0.68, 0.105, 243}, lch{0.85, 0.05, 235}, lch{0.975, 0.004, 235}),
		curve(steps/2, lch{0.975, 0.004, 60}, lch{0.86, 0.06, 55}, lch{0.7, 0.135, 45}, lch{0.52, 0.165, 32}, lch{0.34, 0.125, 22})...)
	// white to blue for what is within its bound, then a break: orange to dark red for what is not
	// round the circle: near white at 0, blue, near black at ±π, orange-brown: lightness and the pair blue and orange tell the
	// quarters apart, also for the colour-blind
	cyclic = append(
		curve(steps/2+1, lch{0.22, 0.03, 20}, lch{0.42, 0.115, 40}, lch{0.66, 0.14, 50}, lch{0.86, 0.06, 65}, lch{0.97, 0.006, 90})[:steps/2],
		curve(steps/2+1, lch{0.97, 0.006, 230}, lch{0.85, 0.06, 235}, lch{0.65, 0.115, 245}, lch{0.42, 0.125, 258}, lch{0.22, 0.03, 260})[1:]...)
	overBound = append(
		curve(steps/2, lch{0.985, 0.003, 250}, lch{0.85, 0.06, 250}, lch{0.68, 0.11, 250}, lch{0.56, 0.13, 252}),
		curve(steps/2, lch{0.8, 0.155, 70}, lch{0.68, 0.19, 45}, lch{0.5, 0.18, 28}, lch{0.3, 0.11, 22})...)
)

// colours are the steps of the kind's map, low to high.
func (k Kind) colours() []color.RGBA {
	switch k {
	case Probabilities, LogProbabilities, Amounts, slots:
		return sequential
	case Angles:
		return cyclic
	case Errors:
		return overBound
	}
	return diverging
}

// classColours are the colours of what has no place on a scale. They keep clear of the kind's map and of each other for full
// and for red- or green-blind sight, which leaves few: the light NaN differs between dark and light maps.
func (k Kind) classColours() [classes]color.RGBA {
	c := [classes]color.RGBA{
		masked: {0xCF, 0xD2, 0xD6, 0xFF},
		nan:    {0xC3, 0xFF, 0x00, 0xFF},
		posInf: {0x00, 0x00, 0x00, 0xFF},
		negInf: {0x00, 0x00, 0xFF, 0xFF},
	}
	if k == LogProbabilities {
		c[zero] = color.RGBA{0xFF, 0xFF, 0xFF, 0xFF}
	}
	switch k {
	case slots: // holds no values but positions
		c[hole], c[rewritten] = c[posInf], color.RGBA{0xFF, 0x5A, 0xFF, 0xFF}
	case Probabilities, LogProbabilities, Amounts:
		c[nan] = color.RGBA{0xFF, 0x5A, 0xFF, 0xFF}
	}
	return c
}

// hatching is drawn over masked cells.
var hatching = color.RGBA{0xB8, 0xBD, 0xC5, 0xFF}

// On a dark page, masked cells recede too.
var maskedDark, hatchingDark = color.RGBA{0x45, 0x4B, 0x54, 0xFF}, color.RGBA{0x5C, 0x64, 0x6F, 0xFF}

func (k Kind) pageColours() viewColours {
	v := viewColours{
		Masked:     [2]string{hex(k.classColours()[masked]), hex(hatching)},
		MaskedDark: [2]string{hex(maskedDark), hex(hatchingDark)},
		Fixed:      map[string]string{},
	}
	v.Fixed[absent.name()] = "transparent"
	for _, c := range []class{zero, nan, posInf, negInf} {
		v.Fixed[c.name()] = hex(k.classColours()[c])
	}
	return v
}

func hex(c color.RGBA) string { return fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B) }

// curve returns n colours at even OKLab distance along the polyline through the given points.
func curve(n int, points ...lch) []color.RGBA {
	const fine = 64 // straight pieces between two points
	var path [][3]float64
	for i := range len(points) - 1 {
		a, b := points[i], points[i+1]
		for j := range fine {
			t := float64(j) / fine
			path = append(path, lch{a.l + t*(b.l-a.l), a.c + t*(b.c-a.c), a.h + t*(b.h-a.h)}.lab())
		}
	}
	path = append(path, points[len(points)-1].lab())

	length := make([]float64, len(path))
	for i := 1; i < len(path); i++ {
		length[i] = length[i-1] + distance(path[i-1], path[i])
	}
	total := length[len(length)-1]

	colours := make([]color.RGBA, n)
	j := 1
	for i := range colours {
		at := total * float64(i) / float64(n-1)
		for j < len(path)-1 && length[j] < at {
			j++
		}
		t := (at - length[j-1]) / (length[j] - length[j-1])
		colours[i] = rgb(mix(path[j-1], path[j], t))
	}
	return colours
}

func (p lch) lab() [3]float64 {
	sin, cos := math.Sincos(p.h * math.Pi / 180)
	return [3]float64{p.l, p.c * cos, p.c * sin}
}

func mix(a, b [3]float64, t float64) [3]float64 {
	for i := range a {
		a[i] += t * (b[i] - a[i])
	}
	return a
}

func distance(a, b [3]float64) float64 {
	return math.Hypot(math.Hypot(a[0]-b[0], a[1]-b[1]), a[2]-b[2])
}

// rgb converts OKLab to sRGB, clipped to its gamut.
func rgb(p [3]float64) color.RGBA {
	l := cube(p[0] + 0.3963377774*p[1] + 0.2158037573*p[2])
	m := cube(p[0] - 0.1055613458*p[1] - 0.0638541728*p[2])
	s := cube(p[0] - 0.0894841775*p[1] - 1.2914855480*p[2])
	return color.RGBA{
		encode(4.0767416621*l - 3.3077115913*m + 0.2309699292*s),
		encode(-1.2684380046*l + 2.6097574011*m - 0.3413193965*s),
		encode(-0.0041960863*l - 0.7034186147*m + 1.7076147010*s),
		0xFF,
	}
}

func cube(x float64) float64 { return x * x * x }

// encode is the sRGB transfer function, to 8 bits.
func encode(linear float64) uint8 {
	v := 12.92 * linear
	if linear > 0.0031308 {
		v = 1.055*math.Pow(linear, 1/2.4) - 0.055
	}
	return uint8(math.Round(clamp(v) * 255))
}

func decode(v uint8) float64 {
	x := float64(v) / 255
	if x <= 0.04045 {
		return x / 12.92
	}
	return math.Pow((x+0.055)/1.055, 2.4)
}

// luminance is the relative luminance of WCAG 2, 0 to 1, by which text picks dark or light ink.
func luminance(c color.RGBA) float64 {
	return 0.2126*decode(c.R) + 0.7152*decode(c.G) + 0.0722*decode(c.B)
}

// step is the colour of place t of a map of n colours.
func step(t float64, n int) int { return min(int(t*float64(n)), n-1) }
