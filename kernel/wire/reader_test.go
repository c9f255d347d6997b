package wire

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

// Whatever the pieces in which a stream comes and is asked for, it is the same stream.
func TestReader(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfN(rapid.Byte(), 0, 20000).Draw(t, "stream")
		var source io.Reader = bytes.NewReader(want)
		switch rapid.IntRange(0, 2).Draw(t, "pieces") {
		case 1:
			source = iotest.HalfReader(source)
		case 2:
			source = iotest.DataErrReader(source)
		}
		r := NewReader(source)
		var got []byte
		for {
			p := make([]byte, rapid.IntRange(1, 9000).Draw(t, "ask"))
			n, err := r.Read(p)
			got = append(got, p[:n]...)
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("%d bytes, want %d", len(got), len(want))
		}
	})
	broken := errors.New("broken")
	r := NewReader(io.MultiReader(bytes.NewReader([]byte{1, 2}), iotest.ErrReader(broken)))
	two := make([]byte, 2)
	if _, err := io.ReadFull(r, two); err != nil || two[1] != 2 {
		t.Errorf("%v, %v", two, err)
	}
	if _, err := r.Read(two); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
}
