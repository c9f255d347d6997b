package devices

import (
	"strings"
	"testing"

	"github.com/attnb/attnb/cudaops/cuda"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		spec    string
		ordinal int
		auto    bool
	}{{"", 0, true}, {"auto", 0, true}, {"host", -1, false}, {"cuda", 0, false}, {"cuda:0", 0, false}, {"cuda:1", 1, false}, {"cuda:12", 12, false}} {
		ordinal, auto, err := parse(c.spec)
		if err != nil || ordinal != c.ordinal || auto != c.auto {
			t.Errorf("parse(%q) = %d, %v, %v", c.spec, ordinal, auto, err)
		}
	}
	for _, spec := range []string{"gpu", "cuda:", "cuda:-1", "cuda:x", "cuda:01", "CUDA", " host"} {
		if _, _, err := parse(spec); err == nil || err.Error() != "ATTNB_DEVICE="+spec+": want host, cuda, cuda:N or auto" {
			t.Errorf("parse(%q): %v", spec, err)
		}
	}
}

func TestOpenHost(t *testing.T) {
	b, note, err := Open("host", 1<<20)
	if err != nil || note != "" {
		t.Fatal(note, err)
	}
	defer b.Close()
	if info := b.Info(); info.Backend != "host" || info.MemoryTotal != 1<<20 {
		t.Errorf("%+v", info)
	}
}

// Without GPU support, auto serves on the host and says why; a named GPU is refused.
func TestOpenWithoutGPU(t *testing.T) {
	if cuda.Built {
		t.Skip("built with GPU support")
	}
	b, note, err := Open("auto", 0)
	if err != nil || !strings.Contains(note, "built without GPU support") {
		t.Fatal(note, err)
	}
	defer b.Close()
	if b.Info().Backend != "host" {
		t.Errorf("%+v", b.Info())
	}
	const want = "ATTNB_DEVICE=cuda:3: cuda: this program was built without GPU support (build tag cuda)"
	if _, _, err := Open("cuda:3", 0); err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}
