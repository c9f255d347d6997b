//go:build !cuda

package devices

import (
	"strings"
	"testing"
)

// Without GPU support, auto serves on the host and says why; a named GPU is refused.
func TestOpenWithoutGPU(t *testing.T) {
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
