package cudaops_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/cudaops/host"
)

// far is a backend whose memories are not the processor's.
type far struct{ cudaops.Backend }

// What goes up in parts comes down in parts, of any length; where a part fails nothing stays.
func TestTransferInParts(t *testing.T) {
	stop := errors.New("stop")
	for name, b := range map[string]cudaops.Backend{"addressable": host.New(host.Options{}), "far": far{host.New(host.Options{})}} {
		d := cudaops.NewDevice(b)
		for _, n := range []int{1, 1000, 1 << 19, 1<<19 + 1, 5<<19 + 77} {
			want := make([]float32, 2*n)
			for i := range want {
				want[i] = float32(i)
			}
			given := 0
			fill := func(part []float32) error {
				given += copy(part, want[given:])
				return nil
			}
			x, err := d.UploadFrom(2, 1, n, fill)
			if err != nil || given != 2*n {
				t.Fatalf("%s: %d: %d values given, %v", name, n, given, err)
			}
			second, err := x.Head(1)
			if err != nil {
				t.Fatal(err)
			}
			columns, err := x.Columns(0, n-n/2)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range []struct {
				b    *cudaops.Buffer
				want []float32
			}{{x, want}, {second, want[n:]}, {columns, slices.Concat(want[:n-n/2], want[n:2*n-n/2])}} {
				var got []float32
				take := func(part []float32) error {
					got = append(got, part...)
					return nil
				}
				if err := d.DownloadTo(c.b, take); err != nil || !slices.Equal(got, c.want) {
					t.Errorf("%s: %d: other values came back: %v", name, n, err)
				}
				if err := d.DownloadTo(c.b, func([]float32) error { return stop }); !errors.Is(err, stop) {
					t.Errorf("%s: %d: error %v", name, n, err)
				}
			}
			for _, b := range []*cudaops.Buffer{x, second, columns} {
				_ = b.Release()
			}
			left := 2 * n
			if _, err := d.UploadFrom(2, 1, n, func(part []float32) error {
				if left -= len(part); left == 0 {
					return stop
				}
				return nil
			}); !errors.Is(err, stop) {
				t.Errorf("%s: %d: error %v", name, n, err)
			}
			if d.InUse() != 0 {
				t.Errorf("%s: %d: %d bytes are still in use", name, n, d.InUse())
			}
		}
		if _, err := d.UploadFrom(2, 0, 3, func([]float32) error { return stop }); !errors.As(err, new(*cudaops.InputError)) {
			t.Errorf("%s: an empty shape: %v", name, err)
		}
	}
}
