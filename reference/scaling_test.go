package reference_test

import (
	"errors"
	"math"
	"testing"

	"github.com/attnb/attnb/reference"
)

// The scaled frequencies of the golden files, which hold f32 values: they agree to the rounding of an f32 power and of the few
// f32 operations on it.
func TestScalingGolden(t *testing.T) {
	for _, c := range []struct {
		name      string
		scaling   reference.Scaling
		magnitude float64
	}{
		{"llama_linear_a", reference.LinearScaling{Factor: 4}, 1},
		{"llama_dynamic_a", reference.DynamicNTK{Factor: 3, Trained: 7, Length: 9}, 1},
		{"llama_llama3_a", reference.Llama3{Factor: 8, Low: 1, High: 4, Trained: 8192}, 1},
		{"llama_yarn_a", reference.YaRN{Factor: 4, Trained: 4096}, 1.138629436111989},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, magnitude, err := c.scaling.Frequencies(64, 5e5)
			if err != nil {
				t.Fatal(err)
			}
			if !(math.Abs(magnitude-c.magnitude) <= 1e-15) {
				t.Errorf("magnitude %v, want %v", magnitude, c.magnitude)
			}
			closeTo(t, got, open(t, c.name).numbers("inv_freq"), 4e-7)
		})
	}
	got, err := reference.InvFreq(64, 5e5)
	if err != nil {
		t.Fatal(err)
	}
	closeTo(t, got, open(t, "llama_a").numbers("inv_freq"), 2e-7)
}

// closeTo asserts agreement relative to each value.
func closeTo(t *testing.T, got, want []float64, tolerance float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d frequencies, want %d", len(got), len(want))
	}
	for i := range got {
		if !(math.Abs(got[i]/want[i]-1) <= tolerance) {
			t.Errorf("frequency %d is %v, want %v", i, got[i], want[i])
		}
	}
}

// Llama 3.2 1B and 3.1 8B, by published configuration: which pairs stay, mix, or are divided.
func TestLlama3Pairs(t *testing.T) {
	plain, _ := reference.InvFreq(64, 5e5)
	got, _, err := reference.Llama3{Factor: 32, Low: 1, High: 4, Trained: 8192}.Frequencies(64, 5e5)
	if err != nil {
		t.Fatal(err)
	}
	closeTo(t, got[:15], plain[:15], 0)
	closeTo(t, got[15:18], []float64{1.290548e-03, 4.295568e-04, 9.708288e-05}, 5e-7)
	for i := 18; i < 32; i++ {
		closeTo(t, got[i:i+1], []float64{plain[i] / 32}, 1e-15)
	}

	plain, _ = reference.InvFreq(128, 5e5)
	got, _, err = reference.Llama3{Factor: 8, Low: 1, High: 4, Trained: 8192}.Frequencies(128, 5e5)
	if err != nil {
		t.Fatal(err)
	}
	for i := range plain {
		switch ratio := plain[i] / got[i]; {
		case i <= 28 && ratio != 1, i >= 35 && math.Abs(ratio-8) > 1e-14, i > 28 && i < 35 && !(ratio > 1 && ratio < 8):
			t.Errorf("pair %d is divided by %v", i, ratio)
		}
	}
}

// What scaling must do at its limits.
func TestScalingLimits(t *testing.T) {
	plain, _ := reference.InvFreq(16, 1e4)
	for _, same := range []reference.Scaling{
		reference.LinearScaling{Factor: 1},
		reference.DynamicNTK{Factor: 4, Trained: 100, Length: 100},
		reference.DynamicNTK{Factor: 4, Trained: 100, Length: 3}, // a short sequence is as trained
		reference.Llama3{Factor: 1, Low: 1, High: 4, Trained: 100},
		reference.YaRN{Factor: 1, Trained: 100},
	} {
		got, magnitude, err := same.Frequencies(16, 1e4)
		if err != nil || magnitude != 1 {
			t.Fatalf("%v: magnitude %v, %v", same, magnitude, err)
		}
		closeTo(t, got, plain, 1e-15)
	}
	// The base's exponent is such that the slowest pair slows by the stretch itself: 4*200/100 - 3 = 5.
	got, _, _ := reference.DynamicNTK{Factor: 4, Trained: 100, Length: 200}.Frequencies(16, 1e4)
	closeTo(t, []float64{got[0], plain[7] / got[7]}, []float64{1, 5}, 1e-14)
	// An attention factor that is given stands.
	if _, magnitude, _ := (reference.YaRN{Factor: 8, Trained: 100, Attention: 0.7}).Frequencies(16, 1e4); magnitude != 0.7 {
		t.Errorf("magnitude %v, want 0.7", magnitude)
	}
	// A ramp that is not rounded to whole pairs ends elsewhere.
	whole, _, _ := reference.YaRN{Factor: 8, Trained: 1000}.Frequencies(64, 1e4)
	part, _, _ := reference.YaRN{Factor: 8, Trained: 1000, Fractional: true}.Frequencies(64, 1e4)
	differ := 0
	for i := range whole {
		if whole[i] != part[i] {
			differ++
		}
	}
	if differ == 0 {
		t.Error("the rounding of the ramp changed nothing")
	}
	// Where the trained length leaves no ramp, mixing is a step and nothing is NaN.
	step, _, err := reference.YaRN{Factor: 8, Trained: 1}.Frequencies(64, 1e4)
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range step {
		if !(f > 0) {
			t.Errorf("frequency %d is %v", i, f)
		}
	}
}

func TestScalingRefusals(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		scaling reference.Scaling
		rotary  int
		base    float64
		want    string
	}{
		{reference.LinearScaling{Factor: 0}, 8, 1e4, "reference: LinearScaling: bad argument: factor 0 is not a positive number"},
		{reference.LinearScaling{Factor: 2}, 7, 1e4, "reference: LinearScaling: bad argument: rotary 7 is not an even number from 2"},
		{reference.LinearScaling{Factor: 2}, 8, nan, "reference: LinearScaling: bad argument: base NaN is not a positive number"},
		{reference.DynamicNTK{Factor: 2, Trained: 8, Length: 9}, 2, 1e4, "reference: DynamicNTK: bad argument: rotary 2 has one pair, whose frequency is 1 for every base"},
		{reference.DynamicNTK{Factor: 0.5, Trained: 8, Length: 9}, 8, 1e4, "reference: DynamicNTK: bad argument: factor 0.5 is not a number from 1"},
		{reference.DynamicNTK{Factor: 2, Length: 9}, 8, 1e4, "reference: DynamicNTK: bad argument: trained length 0 and length 9 must be positive"},
		{reference.DynamicNTK{Factor: 2, Trained: 8, Length: 9}, 8, 0, "reference: DynamicNTK: bad argument: base 0 is not a positive number"},
		{reference.Llama3{Factor: inf, Low: 1, High: 4, Trained: 1}, 8, 1e4, "reference: Llama3: bad argument: factor +Inf is not a positive number"},
		{reference.Llama3{Factor: 2, Low: 4, High: 4, Trained: 1}, 8, 1e4, "reference: Llama3: bad argument: low 4 and high 4 are not positive numbers, low below high"},
		{reference.Llama3{Factor: 2, Low: 1, High: 4}, 8, 1e4, "reference: Llama3: bad argument: trained length 0 must be positive"},
		{reference.YaRN{Factor: nan, Trained: 1}, 8, 1e4, "reference: YaRN: bad argument: factor NaN is not a positive number"},
		{reference.YaRN{Factor: 2, Trained: 1}, 8, 1, "reference: YaRN: bad argument: base 1 is not above 1, so no pair is slower than another"},
		{reference.YaRN{Factor: 2, Trained: 1, Fast: 1, Slow: 2}, 8, 1e4, "reference: YaRN: bad argument: fast 1 and slow 2 are not positive numbers, slow below fast"},
		{reference.YaRN{Factor: 2}, 8, 1e4, "reference: YaRN: bad argument: trained length 0 must be positive"},
		{reference.YaRN{Factor: 2, Trained: 1, Attention: -1}, 8, 1e4, "reference: YaRN: bad argument: attention factor -1 is not a positive number"},
	} {
		f, _, err := c.scaling.Frequencies(c.rotary, c.base)
		if err == nil || err.Error() != c.want || !errors.Is(err, reference.ErrArgument) || f != nil {
			t.Errorf("%+v: %v, %v\nwant %s", c.scaling, f, err, c.want)
		}
	}
}
