//go:build cuda

package cuda

import (
	"fmt"
	"testing"
	"time"

	"github.com/attnb/attnb/cudaops"
)

func TestProgressNames(t *testing.T) {
	var word uint32
	p := &progress{word: &word}
	if got := p.running("Download"); got != "Download" {
		t.Errorf("before any kernel: %q", got)
	}
	for i := range 3000 {
		p.next(fmt.Sprint("op ", i+1))
	}
	for _, c := range []struct {
		began uint32
		want  string
	}{{3000, "op 3000"}, {2999, "op 2999"}, {3000 - 1023, "op 1977"}, {3000 - 1024, "an op before op 1977"}, {1, "an op before op 1977"}} {
		word = c.began
		if got := p.running("Download"); got != c.want {
			t.Errorf("kernel %d began: %q, want %q", c.began, got, c.want)
		}
	}
	p.last = 1<<32 - 1
	p.next("wrapped")
	if word = p.last; word == 0 || p.running("Download") != "wrapped" {
		t.Errorf("number %d: %q", word, p.running("Download"))
	}
}

// BenchmarkLaunch is the device's time of a kernel that does next to nothing, launched again and again, with the op's number
// stored in host memory, as ever, and in the GPU's own: the difference is what the record costs.
func BenchmarkLaunch(b *testing.B) {
	back, err := open(0, Options{})
	if err != nil {
		b.Skip(err)
	}
	defer back.Close()
	d := cudaops.NewDevice(back)
	x, err := d.Upload(make([]float32, 64), 1, 1, 64)
	if err != nil {
		b.Fatal(err)
	}
	own, err := back.Alloc(1)
	if err != nil {
		b.Fatal(err)
	}
	host, v := back.progress.device, x.View()
	for _, to := range []struct {
		name string
		word pointer
	}{{"host", host}, {"device", address(own, 0)}, {"host again", host}, {"device again", address(own, 0)}} {
		b.Run(to.name, func(b *testing.B) {
			back.progress.device = to.word
			defer func() { back.progress.device = host }()
			took, err := back.Elapsed(func() error {
				for range b.N {
					if err := back.Add(v, v, v); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(took)/float64(time.Microsecond)/float64(b.N), "us/kernel")
		})
	}
}
