package viz

import (
	"image/color"
	"math"
	"testing"
)

// lightness is OKLab's, the inverse of rgb.
func lightness(c color.RGBA) float64 { return lab(c)[0] }

func lab(c color.RGBA) [3]float64 { return labOf(decode(c.R), decode(c.G), decode(c.B)) }

func labOf(r, g, b float64) [3]float64 {
	l := math.Cbrt(0.4122214708*r + 0.5363325363*g + 0.0514459929*b)
	m := math.Cbrt(0.2119034982*r + 0.6806995451*g + 0.1073969566*b)
	s := math.Cbrt(0.0883024619*r + 0.2817188376*g + 0.6299787005*b)
	return [3]float64{
		0.2104542553*l + 0.7936177850*m - 0.0040720468*s,
		1.9779984951*l - 2.4285922050*m + 0.4505937099*s,
		0.0259040371*l + 0.7827717662*m - 0.8086757660*s,
	}
}

// seen is a colour as the red-blind and the green-blind see it (Machado, Oliveira, Fernandes 2009, severity 1).
var seen = map[string][3][3]float64{
	"everyone":    {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
	"red-blind":   {{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}},
	"green-blind": {{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}},
}

func as(c color.RGBA, m [3][3]float64) [3]float64 {
	rgb := [3]float64{decode(c.R), decode(c.G), decode(c.B)}
	var out [3]float64
	for i := range out {
		out[i] = clamp(m[i][0]*rgb[0] + m[i][1]*rgb[1] + m[i][2]*rgb[2])
	}
	return labOf(out[0], out[1], out[2])
}

func TestMapsAreEvenAndMonotone(t *testing.T) {
	half := steps / 2
	for name, m := range map[string][]color.RGBA{
		"sequential": sequential, "below 0": diverging[:half], "above 0": diverging[half:], "within the bound": overBound[:half], "beyond it": overBound[half:],
	} {
		var least, most = math.Inf(1), 0.0
		up := lightness(m[len(m)-1]) > lightness(m[0])
		for i := 1; i < len(m); i++ {
			d := distance(lab(m[i-1]), lab(m[i]))
			least, most = min(least, d), max(most, d)
			if dl := lightness(m[i]) - lightness(m[i-1]); (dl > 0) != up {
				t.Errorf("%s: lightness turns at step %d (%g)", name, i, dl)
			}
		}
		// 8-bit channels alone move a colour by up to 0.004
		if most > 2*least+0.006 {
			t.Errorf("%s: steps from %.4f to %.4f", name, least, most)
		}
	}
}

// Neither value nor background is mistaken for a class of its own, by nobody.
func TestClassColoursStandApart(t *testing.T) {
	for who, m := range seen {
		for _, k := range []Kind{Scores, Probabilities, Errors, LogProbabilities} {
			special := k.classColours()
			for _, c := range []class{nan, posInf, negInf, masked, zero} {
				if c == zero && k != LogProbabilities {
					continue // is a value there
				}
				limit := 0.11
				if c == masked {
					limit = 0.02 // what tells it from a pale blue is its hatching
				}
				for i, v := range k.colours() {
					if d := distance(as(v, m), as(special[c], m)); d < limit {
						t.Errorf("%s: %s is %.3f from step %d of %s", who, c.name(), d, i, k.quantity())
					}
				}
				lowest := k.colours()[step(k.scale(summary{min: 1e-9, max: 1}).norm(0), steps)]
				if d := distance(as(lowest, m), as(special[c], m)); d < 0.1 {
					t.Errorf("%s: %s is %.3f from the 0 of %s", who, c.name(), d, k.quantity())
				}
				for b := masked; b < hole; b++ {
					least := 0.15
					if b == zero && c == masked {
						least = 0.12 // white, and grey with hatching
					}
					if b <= c || b == finite || b == zero && k != LogProbabilities {
						continue
					}
					if d := distance(as(special[b], m), as(special[c], m)); d < least {
						t.Errorf("%s: %s and %s of %s are %.3f apart", who, b.name(), c.name(), k.quantity(), d)
					}
				}
			}
		}
		// both signs, and both sides of the threshold, tell apart at the same strength
		for i := range steps / 2 {
			if i < steps/2-8 {
				if d := distance(as(diverging[i], m), as(diverging[steps-1-i], m)); d < 0.02 {
					t.Errorf("%s: steps ±%d of the diverging map are %.3f apart", who, steps/2-i, d)
				}
			}
		}
		if d := distance(as(overBound[steps/2-1], m), as(overBound[steps/2], m)); d < 0.15 {
			t.Errorf("%s: the threshold is a step of %.3f", who, d)
		}
	}
}

// WCAG 2 asks for a contrast of 4.5 for text.
func TestTextContrast(t *testing.T) {
	contrast := func(a, b color.RGBA) float64 {
		x, y := luminance(a)+0.05, luminance(b)+0.05
		return max(x, y) / min(x, y)
	}
	for _, i := range []int{ink, dim} {
		if c := contrast(named[i-steps], named[paper-steps]); c < 4.5 {
			t.Errorf("text %v on paper has a contrast of %.2f", named[i-steps], c)
		}
	}
	for _, k := range []Kind{Scores, Probabilities, Errors} {
		c := newCanvas(1, 1, k)
		for i := range steps {
			if r := contrast(c.colours[i], c.colours[c.inkOn(uint8(i))]); r < 3.8 {
				t.Errorf("a number on step %d of %s has a contrast of %.2f", i, k.quantity(), r)
			}
		}
	}
}

func TestPaletteFits(t *testing.T) {
	for k := Scores; k <= slots; k++ {
		if n := len(newCanvas(1, 1, k).Palette); n > 256 {
			t.Errorf("%d colours", n)
		}
	}
}
