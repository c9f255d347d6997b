package tensorfile

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
)

// element is how a file writes one number.
type element struct {
	name  string
	size  int // bytes
	order binary.ByteOrder
	bits  func(binary.ByteOrder, []byte) float64 // nil: it is f32
}

func float64Bits(o binary.ByteOrder, b []byte) float64 { return math.Float64frombits(o.Uint64(b)) }
func bfloat16Bits(o binary.ByteOrder, b []byte) float64 {
	return float64(math.Float32frombits(uint32(o.Uint16(b)) << 16))
}

// float16Bits reads IEEE 754 binary16: 1 bit of sign, 5 of exponent (bias 15), 10 of fraction.
func float16Bits(o binary.ByteOrder, b []byte) float64 {
	h := o.Uint16(b)
	exponent, fraction := int(h>>10&0x1f), float64(h&0x3ff)
	var v float64
	switch exponent {
	case 0:
		v = math.Ldexp(fraction, -24)
	case 0x1f:
		v = math.Inf(1)
		if fraction != 0 {
			v = math.NaN()
		}
	default:
		v = math.Ldexp(1024+fraction, exponent-25)
	}
	if h&0x8000 != 0 {
		v = math.Copysign(v, -1)
	}
	return v
}

// elements are those of little-endian files, by the names that safetensors gives them.
var elements = map[string]element{
	"F64":  {"f64", 8, binary.LittleEndian, float64Bits},
	"F32":  {"f32", 4, binary.LittleEndian, nil},
	"F16":  {"f16", 2, binary.LittleEndian, float16Bits},
	"BF16": {"bf16", 2, binary.LittleEndian, bfloat16Bits},
}

// read reads count elements as f32, growing with what arrives. A finite value that f32 does not hold is an error. Values that are f32
// keep their bits, those of a NaN too.
func (e element) read(r io.Reader, count int) ([]float32, error) {
	const step = 1 << 16
	buf := make([]byte, min(count, step)*e.size)
	data := make([]float32, 0, min(count, 4*step))
	for len(data) < count {
		n := min(count-len(data), step)
		if _, err := io.ReadFull(r, buf[:n*e.size]); err != nil {
			return nil, fmt.Errorf("data ends after %d of %d elements", len(data), count)
		}
		if e.bits == nil {
			for i := range n {
				data = append(data, math.Float32frombits(e.order.Uint32(buf[4*i:])))
			}
			continue
		}
		for i := range n {
			wide := e.bits(e.order, buf[i*e.size:])
			v := float32(wide)
			if math.IsInf(float64(v), 0) && !math.IsInf(wide, 0) {
				return nil, fmt.Errorf("value %g of element %d does not fit f32", wide, len(data))
			}
			data = append(data, v)
		}
	}
	return data, nil
}
