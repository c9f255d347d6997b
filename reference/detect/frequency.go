package detect

import (
	"fmt"
	"math"
	"slices"

	"github.com/attnb/attnb/reference"
)

// spectrum is a hypothesis about the inverse frequencies of a rotation.
type spectrum struct {
	frequency []float64
	text      string
	faults    Faults // against the declaration
	search    bool   // worth a search of positions
	stretched bool   // one of many factors: worth no search at all
}

// bases that models use.
var bases = []float64{1e4, 1e5, 1.5e5, 5e5, 1e6, 5e6, 8e6, 1e7}

// factors by which models stretch.
var factors = []float64{2, 4, 8, 16, 32, 64, 3, 5, 6, 10, 20, 40, 1.5, 2.5, 12, 24, 48, 128}

// trained lengths of models.
var trainedLengths = []int{8192, 4096, 2048, 32768, 16384, 65536, 131072, 1024, 512}

// powers are base^(-2i/denominator), rotary/2 of them.
func powers(rotary, denominator int, base float64) []float64 {
	out := make([]float64, rotary/2)
	for i := range out {
		out[i] = math.Pow(base, -2*float64(i)/float64(denominator))
	}
	return out
}

// declaredSpectra are the frequencies that need no measurement: what was declared, the usual departures from it, the usual bases.
func declaredSpectra(rotary, dim int, d reference.RoPE) []spectrum {
	var out []spectrum
	add := func(f []float64, text string, faults ...Fault) {
		if !slices.ContainsFunc(out, func(s spectrum) bool { return slices.Equal(s.frequency, f) }) {
			out = append(out, spectrum{f, text, faults, len(faults) == 0, false})
		}
	}
	if rotary == d.Rotary {
		f := make([]float64, rotary/2)
		for i := range f {
			f[i] = d.Frequency(i)
		}
		add(f, "the declared frequencies")
	}
	if d.Base > 0 {
		plain := powers(rotary, rotary, d.Base)
		text := fmt.Sprintf("base %.6g", d.Base)
		if d.InvFreq == nil || rotary != d.Rotary {
			add(plain, text)
		} else {
			add(plain, text+", unscaled", unscaledFault)
		}
		for _, denominator := range []int{dim, d.Rotary} {
			if denominator != rotary {
				add(powers(rotary, denominator, d.Base), fmt.Sprintf("%s, denominator %d", text, denominator),
					Fault{WrongDenominator, fmt.Sprintf("the exponent is -2i/%d, declared -2i/%d", denominator, d.Rotary),
						"divide by the rotary dims (or declare the frequencies, if the model was trained so)"})
			}
		}
	}
	for _, base := range bases {
		if base != d.Base {
			add(powers(rotary, rotary, base), fmt.Sprintf("base %.6g", base),
				Fault{WrongBase, fmt.Sprintf("%.6g, declared %.6g", base, d.Base), "take the base of the model's configuration"})
		}
	}
	if rotary == d.Rotary {
		for _, factor := range factors { // as far as one row can tell: several are measured
			for _, k := range []float64{factor, 1 / factor} {
				f := slices.Clone(out[0].frequency)
				for i := range f {
					f[i] /= k
				}
				before := len(out)
				add(f, fmt.Sprintf("positions divided by %.6g", k), linearFault(k))
				for i := before; i < len(out); i++ { // none, if it is one of those above
					out[i].stretched = true
				}
			}
		}
	}
	return out
}

var unscaledFault = Fault{WrongScaling, "the frequencies are not scaled", "apply the scaling that the model's configuration gives"}

func linearFault(k float64) Fault {
	return Fault{WrongScaling, fmt.Sprintf("linear: all frequencies are divided by %.6g", k), "declare that scaling, or take it out"}
}

// steps are the frequencies that the angles themselves show, if rows turn by equal steps: from one row to the next, then over
// ever longer distances, each of which tells the frequency more exactly.
func (t turns) steps(noise float64) (frequency, uncertain []float64, ok bool) {
	if t.rows < 2 {
		return nil, nil, false
	}
	frequency, uncertain = make([]float64, t.rotary/2), make([]float64, t.rotary/2)
	for i := range frequency {
		f, have := 0.0, 0
		for distance := 1; distance < t.rows; distance++ {
			for row := 0; row+distance < t.rows; row++ {
				if !t.known[row][i] || !t.known[row+distance][i] {
					continue
				}
				turn := wrap(t.angle[row+distance][i] - t.angle[row][i])
				turn += 2 * math.Pi * math.Round((f*float64(distance)-turn)/(2*math.Pi))
				if have > 0 && !(math.Abs(turn-f*float64(distance)) <= 4*noise+float64(distance)*2*noise/float64(have)) {
					return nil, nil, false
				}
				if distance > have {
					f, have = turn/float64(distance), distance
				}
			}
		}
		if have == 0 {
			return nil, nil, false
		}
		frequency[i], uncertain[i] = f, 2*noise/float64(have)
	}
	return frequency, uncertain, true
}

// sharpen takes the declared positions for true, and their distance from position 0, where no pair is turned, for one more
// distance to measure the frequencies over. It fails where the frequencies are not known well enough to count whole turns.
func (t turns) sharpen(frequency, uncertain []float64, noise float64, declared []int) bool {
	sharper := false
	for i, f := range frequency {
		for row, p := range declared {
			position := math.Abs(float64(p))
			if !t.known[row][i] || position*uncertain[i] > 1 || position*uncertain[i] < 2*noise {
				continue
			}
			turn := t.angle[row][i]
			turn += 2 * math.Pi * math.Round((f*float64(p)-turn)/(2*math.Pi))
			if math.Abs(turn-f*float64(p)) > position*uncertain[i]+noise {
				return false // not at these positions
			}
			f, sharper = turn/float64(p), true
			frequency[i], uncertain[i] = f, noise/position
		}
	}
	return sharper
}

// measuredSpectra explain measured frequencies: another base or denominator, dynamic NTK, linear scaling, llama3, YaRN.
func measuredSpectra(f, uncertain []float64, rotary, dim int, d reference.RoPE) []spectrum {
	agrees := func(got []float64) bool {
		for i := range got {
			if !(math.Abs(got[i]-f[i]) <= 2*uncertain[i]+4*angleSlack*math.Abs(f[i])) {
				return false
			}
		}
		return true
	}
	var out []spectrum
	add := func(got []float64, text string, faults ...Fault) {
		if agrees(got) {
			out = append(out, spectrum{got, text, faults, true, false})
		}
	}
	// The fastest pair turns by 1 a position, unless positions are scaled.
	scale, fits := 1/f[0], []float64{1}
	if math.Abs(f[0]-1) > 2*uncertain[0]+angleSlack && math.Abs(scale) < 1e4 {
		fits = append(fits, nice(scale, uncertain[0]*scale*scale+angleSlack))
	}
	for _, k := range fits {
		var scaled Faults
		text := ""
		if k != 1 {
			scaled, text = Faults{linearFault(k)}, fmt.Sprintf(", positions divided by %.6g", k)
		}
		divide := func(g []float64) []float64 {
			g = slices.Clone(g)
			for i := range g {
				g[i] /= k
			}
			return g
		}
		if d.InvFreq != nil && rotary == d.Rotary && k == 1 {
			scaled = Faults{unscaledFault}
		}
		if d.Base > 0 {
			add(divide(powers(rotary, rotary, d.Base)), fmt.Sprintf("base %.6g%s", d.Base, text), scaled...)
		}
		if slope, off, ok := decay(1/k, f, uncertain); ok && rotary > 2 {
			for _, denominator := range slices.Compact([]int{rotary, dim}) {
				x := math.Exp(slope * float64(denominator) / 2)
				error := x * off * float64(denominator) / 2
				for _, base := range slices.Compact([]float64{nice(x, x*angleSlack+error), nice(x, error), nice(x, error/8), x}) {
					faults, text := slices.Clone(scaled), fmt.Sprintf("base %.6g%s", base, text)
					if denominator != rotary {
						text += fmt.Sprintf(", denominator %d", denominator)
						faults = append(faults, Fault{WrongDenominator, fmt.Sprintf("the exponent is -2i/%d, declared -2i/%d", denominator, d.Rotary), "divide by the rotary dims"})
					}
					got := divide(powers(rotary, denominator, base))
					if base != d.Base {
						add(got, text, append(slices.Clone(faults), Fault{WrongBase, fmt.Sprintf("%.6g, declared %.6g", base, d.Base), "take the base of the model's configuration"})...)
					} else {
						add(got, text, faults...)
					}
					if d.Base > 0 && denominator == rotary && base > d.Base {
						stretch := math.Pow(base/d.Base, float64(rotary-2)/float64(rotary))
						add(got, fmt.Sprintf("dynamic NTK: base %.6g stretched by %.6g", d.Base, stretch), append(Faults{{WrongScaling,
							fmt.Sprintf("dynamic NTK: factor*length/trained - (factor-1) is %.6g over base %.6g", stretch, d.Base),
							"declare that scaling, or take it out"}}, scaled...)...)
					}
				}
			}
		}
	}
	if d.Base > 1 {
		for _, s := range scalings(f, uncertain, rotary, d.Base) {
			got, _, err := s.Frequencies(rotary, d.Base)
			if err == nil {
				add(got, s.String(), Fault{WrongScaling, s.String(), "declare that scaling, or take it out"})
			}
		}
	}
	if len(out) == 0 {
		out = append(out, spectrum{slices.Clone(f), "frequencies of no known kind", Faults{{WrongScaling, fmt.Sprintf("the frequencies are of no known kind: %.4g", f), "compare them with the model's configuration"}}, true, false})
	}
	return out
}

// scalings are the llama3 and YaRN scalings that models use, with the factors that the slowest pairs allow.
func scalings(f, uncertain []float64, rotary int, base float64) []reference.Scaling {
	plain := powers(rotary, rotary, base)
	last := len(f) - 1
	candidates := slices.Clone(factors)
	if ratio := plain[last] / f[last]; uncertain[last] < f[last]/8 && ratio > 1 {
		if k := nice(ratio, ratio*uncertain[last]/f[last]+angleSlack); !slices.Contains(candidates, k) {
			candidates = append(candidates, k)
		}
	}
	var out []reference.Scaling
	for _, factor := range candidates {
		if !(math.Abs(plain[last]/factor-f[last]) <= 2*uncertain[last]+4*angleSlack*f[last]) {
			continue
		}
		for _, trained := range trainedLengths {
			out = append(out, reference.Llama3{Factor: factor, Low: 1, High: 4, Trained: trained},
				reference.YaRN{Factor: factor, Trained: trained}, reference.YaRN{Factor: factor, Trained: trained, Fractional: true})
		}
	}
	return out
}

// decay is how fast f falls, f_i = f_0 e^(-i slope), and how well that is known; it fails where f does not fall so.
func decay(first float64, f, uncertain []float64) (slope, off float64, ok bool) {
	off = math.Inf(1)
	for i := 1; i < len(f); i++ {
		ratio := f[i] / first
		if !(ratio > 0) {
			continue
		}
		// The pair that tells the slope best.
		if e := uncertain[i] / math.Abs(f[i]) / float64(i); e < off {
			slope, off = -math.Log(ratio)/float64(i), e
		}
	}
	return slope, off + exactSlack, off < 0.1 && slope > 0
}

// nice is the roundest decimal number within off of x.
func nice(x, off float64) float64 {
	if x == 0 || !(off < math.Abs(x)) {
		return x
	}
	for digits := 1; digits < 12; digits++ {
		unit := math.Pow(10, math.Floor(math.Log10(math.Abs(x)))+1-float64(digits))
		if r := math.Round(x/unit) * unit; math.Abs(r-x) <= off {
			// Dividing by the inverse power gives the decimal itself where the unit is no exact float64.
			if unit < 1 {
				r = math.Round(x/unit) / math.Round(1/unit)
			}
			return r
		}
	}
	return x
}
