package wire

import (
	"bytes"
	"encoding/binary"
	"testing"
)

// FuzzReadFrame reads frames, and then f32 values, of a stream that claims any lengths. What is read was sent.
func FuzzReadFrame(f *testing.F) {
	f.Add([]byte("\x03\x00\x00\x00abc\x00\x00\x00\x00"), 8)
	f.Add([]byte("\xff\xff\xff\xffabc"), 1<<40)
	f.Add([]byte("\x00\x00\x00\x04abcd"), -4)
	f.Fuzz(func(t *testing.T, sent []byte, n int) {
		r := NewReader(bytes.NewReader(sent))
		at := 0
		for {
			body, err := ReadFrame(r)
			if err != nil {
				break
			}
			if size := int(binary.LittleEndian.Uint32(sent[at:])); size != len(body) || !bytes.Equal(sent[at+4:at+4+size], body) {
				t.Fatalf("a frame of %d bytes at %d, %d were sent", len(body), at, size)
			}
			at += 4 + len(body)
		}
		values, err := ReadFloats(bytes.NewReader(sent), n)
		if err == nil && !bytes.Equal(FloatBytes(values), sent[:n]) {
			t.Fatalf("%d values of %d bytes", len(values), n)
		}
		if (err == nil) != (n >= 0 && n%4 == 0 && n <= len(sent)) {
			t.Fatalf("%d of %d bytes: %v", n, len(sent), err)
		}
	})
}
