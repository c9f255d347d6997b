package wire

import (
	"encoding/binary"
	"io"
	"math"
	"unsafe"
)

var littleEndian = func() bool {
	x := uint16(1)
	return *(*byte)(unsafe.Pointer(&x)) == 1
}()

// FloatBytes returns the little-endian bytes of x: x's own memory where the machine is little-endian, else a copy.
func FloatBytes(x []float32) []byte {
	if len(x) == 0 {
		return nil
	}
	if littleEndian {
		return unsafe.Slice((*byte)(unsafe.Pointer(&x[0])), 4*len(x))
	}
	b := make([]byte, 0, 4*len(x))
	for _, v := range x {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

// decodeFloats reads len(dst) values from little-endian bytes.
func decodeFloats(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:]))
	}
}

// grows is by how much the memory may grow that has been filled: few copies of what came first, and little memory for a claim.
const grows = 64

// ReadFloats reads n bytes of f32. Memory grows with what arrives.
func ReadFloats(r io.Reader, n int) ([]float32, error) {
	if n < 0 || n%4 != 0 {
		return nil, errMalformed
	}
	total := n / 4
	out := make([]float32, 0, min(total, chunk/4))
	for len(out) < total {
		if len(out) == cap(out) {
			out = append(make([]float32, 0, min(total, grows*cap(out))), out...)
		}
		if err := FillFloats(r, out[len(out):cap(out)]); err != nil {
			return nil, err
		}
		out = out[:cap(out)]
	}
	return out, nil
}

// FillFloats reads as many values as dst has room for.
func FillFloats(r io.Reader, dst []float32) error {
	buf := FloatBytes(dst)
	if _, err := io.ReadFull(r, buf); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	if !littleEndian {
		decodeFloats(dst, buf)
	}
	return nil
}
