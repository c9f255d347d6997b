package reference

import (
	"fmt"
	"math"
)

// Scaling stretches the frequencies of a RoPE to positions beyond those that a model was trained on. Its result goes into
// [RoPE].InvFreq and [RoPE].Magnitude.
type Scaling interface {
	// Frequencies are the rotary/2 inverse frequencies, radians a position, and what cosine and sine are multiplied by.
	Frequencies(rotary int, base float64) (invFreq []float64, magnitude float64, err error)
	String() string
}

// InvFreq are the unscaled inverse frequencies f_i = base^(-2i/rotary) (arXiv:2104.09864, equation 15).
func InvFreq(rotary int, base float64) ([]float64, error) {
	return plainFrequencies("InvFreq", rotary, base)
}

func plainFrequencies(op string, rotary int, base float64) ([]float64, error) {
	if rotary < 2 || rotary%2 != 0 {
		return nil, badArgument(op, "rotary %d is not an even number from 2", rotary)
	}
	if !positive(base) {
		return nil, badArgument(op, "base %v is not a positive number", base)
	}
	out := make([]float64, rotary/2)
	for i := range out {
		out[i] = math.Pow(base, -2*float64(i)/float64(rotary))
	}
	return out, nil
}

// LinearScaling divides every position, and so every frequency, by Factor (Chen et al., arXiv:2306.15595, equation 4).
type LinearScaling struct{ Factor float64 }

func (l LinearScaling) Frequencies(rotary int, base float64) ([]float64, float64, error) {
	const op = "LinearScaling"
	f, err := plainFrequencies(op, rotary, base)
	if err != nil {
		return nil, 0, err
	}
	if !positive(l.Factor) {
		return nil, 0, badArgument(op, "factor %v is not a positive number", l.Factor)
	}
	for i := range f {
		f[i] /= l.Factor
	}
	return f, 1, nil
}

func (l LinearScaling) String() string { return fmt.Sprintf("linear, factor %.6g", l.Factor) }

// DynamicNTK raises the base as a sequence grows beyond Trained rows, so that the fastest pair stays and the slowest slows by
// about Factor*Length/Trained - (Factor-1):
//
//	base' = base * (Factor*Length/Trained - (Factor-1))^(rotary/(rotary-2)),  Length at least Trained
//
// The frequencies of all rows follow the length of the sequence, so rows that were cached earlier keep those of a shorter
// one: decoding differs from prefill by nature. Source: the dynamic "NTK-aware" scaling of arXiv:2309.00071, section 3.3
// (appendix on dynamic scaling), in the form that Hugging Face's transformers ships. A rotary of 2 has no exponent.
type DynamicNTK struct {
	Factor  float64
	Trained int // longest sequence of the training
	Length  int // rows of this sequence
}

func (d DynamicNTK) Frequencies(rotary int, base float64) ([]float64, float64, error) {
	const op = "DynamicNTK"
	switch {
	case rotary == 2:
		return nil, 0, badArgument(op, "rotary 2 has one pair, whose frequency is 1 for every base")
	case !(d.Factor >= 1) || math.IsInf(d.Factor, 1):
		return nil, 0, badArgument(op, "factor %v is not a number from 1", d.Factor)
	case d.Trained < 1 || d.Length < 1:
		return nil, 0, badArgument(op, "trained length %d and length %d must be positive", d.Trained, d.Length)
	case !positive(base):
		return nil, 0, badArgument(op, "base %v is not a positive number", base)
	}
	length := float64(max(d.Length, d.Trained))
	stretch := d.Factor*length/float64(d.Trained) - (d.Factor - 1)
	f, err := plainFrequencies(op, rotary, base*math.Pow(stretch, float64(rotary)/float64(rotary-2)))
	return f, 1, err
}

func (d DynamicNTK) String() string {
	return fmt.Sprintf("dynamic NTK, factor %.6g, trained for %d, %d rows", d.Factor, d.Trained, d.Length)
}

// Llama3 keeps the pairs that turn more than High times within Trained positions, divides by Factor those that turn less than
// Low times, and mixes between, with t_i = Trained f_i / 2 pi turns:
//
//	f'_i = (1-m) f_i/Factor + m f_i,  m = (t_i - Low) / (High - Low) clamped to 0..1
//
// Source: Meta's llama-models, apply_scaling, and the report on Llama 3.1 (arXiv:2407.21783).
type Llama3 struct {
	Factor    float64
	Low, High float64 // turns
	Trained   int     // positions of the original training
}

func (l Llama3) Frequencies(rotary int, base float64) ([]float64, float64, error) {
	const op = "Llama3"
	f, err := plainFrequencies(op, rotary, base)
	if err != nil {
		return nil, 0, err
	}
	switch {
	case !positive(l.Factor):
		return nil, 0, badArgument(op, "factor %v is not a positive number", l.Factor)
	case !positive(l.Low) || !(l.High > l.Low) || math.IsInf(l.High, 1):
		return nil, 0, badArgument(op, "low %v and high %v are not positive numbers, low below high", l.Low, l.High)
	case l.Trained < 1:
		return nil, 0, badArgument(op, "trained length %d must be positive", l.Trained)
	}
	for i := range f {
		turns := float64(l.Trained) * f[i] / (2 * math.Pi)
		m := clamp((turns - l.Low) / (l.High - l.Low))
		f[i] = (1-m)*f[i]/l.Factor + m*f[i]
	}
	return f, 1, nil
}

func (l Llama3) String() string {
	return fmt.Sprintf("llama3, factor %.6g, low %.6g, high %.6g, trained for %d", l.Factor, l.Low, l.High, l.Trained)
}

// YaRN (Peng et al., arXiv:2309.00071, section 3.2 and equation 22) keeps the fast pairs, divides the slow ones by Factor, and
// mixes along a ramp in the index of the pair. The ramp runs between the pairs that turn Fast and Slow times within Trained:
//
//	i(n) = rotary ln(Trained / 2 pi n) / (2 ln base);  low = floor i(Fast), high = ceil i(Slow), within 0..rotary-1
//	f'_i = f_i/Factor * m + f_i (1-m),  m = (i - low) / (high - low) clamped to 0..1
//
// Cosine and sine are multiplied by Attention, so that scores are by its square.
type YaRN struct {
	Factor     float64
	Trained    int
	Fast, Slow float64 // turns; 0 means 32 and 1
	Attention  float64 // 0 means 0.1 ln(Factor) + 1, or 1 for a factor up to 1
	Fractional bool    // the ends of the ramp are not rounded to whole pairs ("truncate": false)
}

func (y YaRN) Frequencies(rotary int, base float64) ([]float64, float64, error) {
	const op = "YaRN"
	f, err := plainFrequencies(op, rotary, base)
	if err != nil {
		return nil, 0, err
	}
	if y.Fast == 0 {
		y.Fast = 32
	}
	if y.Slow == 0 {
		y.Slow = 1
	}
	switch {
	case !positive(y.Factor):
		return nil, 0, badArgument(op, "factor %v is not a positive number", y.Factor)
	case !(base > 1):
		return nil, 0, badArgument(op, "base %v is not above 1, so no pair is slower than another", base)
	case !positive(y.Slow) || !(y.Fast > y.Slow) || math.IsInf(y.Fast, 1):
		return nil, 0, badArgument(op, "fast %v and slow %v are not positive numbers, slow below fast", y.Fast, y.Slow)
	case y.Trained < 1:
		return nil, 0, badArgument(op, "trained length %d must be positive", y.Trained)
	case y.Attention < 0 || math.IsNaN(y.Attention) || math.IsInf(y.Attention, 1):
		return nil, 0, badArgument(op, "attention factor %v is not a positive number", y.Attention)
	}
	low, high := y.ramp(rotary, base)
	for i := range f {
		m := clamp((float64(i) - low) / (high - low))
		f[i] = f[i]/y.Factor*m + f[i]*(1-m)
	}
	return f, y.attention(), nil
}

// ramp is where mixing begins and ends, in pairs.
func (y YaRN) ramp(rotary int, base float64) (low, high float64) {
	pair := func(turns float64) float64 {
		return float64(rotary) * math.Log(float64(y.Trained)/(turns*2*math.Pi)) / (2 * math.Log(base))
	}
	low, high = pair(y.Fast), pair(y.Slow)
	if !y.Fractional {
		low, high = math.Floor(low), math.Ceil(high)
	}
	low, high = max(low, 0), min(high, float64(rotary-1))
	if low == high {
		high += 0.001 // a step instead of a ramp, as the published code has it
	}
	return low, high
}

func (y YaRN) attention() float64 {
	switch {
	case y.Attention != 0:
		return y.Attention
	case y.Factor <= 1:
		return 1
	}
	return 0.1*math.Log(y.Factor) + 1
}

func (y YaRN) String() string {
	return fmt.Sprintf("YaRN, factor %.6g, trained for %d, magnitude %.6g", y.Factor, y.Trained, y.attention())
}

func positive(x float64) bool { return x > 0 && !math.IsInf(x, 1) }

func clamp(x float64) float64 { return min(max(x, 0), 1) }
