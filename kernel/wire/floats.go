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

// ReadFloats reads n bytes of f32. Memory grows with what arrives.
func ReadFloats(r io.Reader, n int) ([]float32, error) {
	if n < 0 || n%4 != 0 {
		return nil, errMalformed
	}
	total := n / 4
	out := make([]float32, 0, min(total, chunk/4))
	for len(out) < total {
		if len(out) == cap(out) {
			out = append(make([]float32, 0, min(total, 2*cap(out))), out...)
		}
		next := out[len(out):cap(out)]
		buf := FloatBytes(next)
		if _, err := io.ReadFull(r, buf); err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
		if !littleEndian {
			decodeFloats(next, buf)
		}
		out = out[:cap(out)]
	}
	return out, nil
}
