package cudaops_test

import (
	"slices"
	"testing"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/cudaops/host"
)

// What a rotation before it asked for changes no other.
func TestRoPEAfterOthers(t *testing.T) {
	turns := []cudaops.RoPE{
		{Rotary: 8, Base: 10000, Offset: 5}, {Rotary: 8, Base: 500, Offset: 5}, {Rotary: 4, Base: 500, Offset: 5},
		{Rotary: 8, Base: 10000, Offset: 5, Angle: cudaops.AngleFloat32}, {Rotary: 8, InvFreq: []float64{1, 2, 3, 4}, Offset: 5},
	}
	x := []float32{1, 2, 3, 4, 5, 6, 7, 8}
	turn := func(d *cudaops.Device, r cudaops.RoPE) []float32 {
		t.Helper()
		in, err := d.Upload(x, 1, 1, 8)
		if err != nil {
			t.Fatal(err)
		}
		out, err := d.RoPE(in, r)
		if err != nil {
			t.Fatal(err)
		}
		got, err := d.Download(out)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	used := cudaops.NewDevice(host.New(host.Options{}))
	for range 2 {
		for _, r := range turns {
			if got, want := turn(used, r), turn(cudaops.NewDevice(host.New(host.Options{})), r); !slices.Equal(got, want) {
				t.Errorf("%+v: %v after others, %v by itself", r, got, want)
			}
		}
	}
}
