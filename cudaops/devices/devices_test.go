package devices

import (
	"strings"
	"testing"
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

func TestOpenHostKernels(t *testing.T) {
	t.Setenv(KernelsVariable, "plain")
	b, _, err := Open("host", 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if info := b.Info(); !strings.HasSuffix(info.Device, ", plain") {
		t.Errorf("%+v", info)
	}
	t.Setenv(KernelsVariable, "sse9")
	if b, _, err := Open("host", 1<<20); b != nil || err == nil || !strings.HasPrefix(err.Error(), `ATTNB_HOST_KERNELS: kernels "sse9": this processor has auto, plain`) {
		t.Errorf("%v, %v", b, err)
	}
}
