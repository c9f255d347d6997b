package wire

import (
	"encoding/binary"
	"errors"
	"math"
)

// errMalformed is all that a decoder says: the two ends are the same version, so it means a fault, not a user's mistake.
var errMalformed = errors.New("wire: malformed message")

// encoder appends tagged fields; a zero value is left out. Numbers are 8 bytes, strings and lists begin with a u32 count.
type encoder struct{ b []byte }

func (e *encoder) tag(t byte)   { e.b = append(e.b, t) }
func (e *encoder) u64(v uint64) { e.b = binary.LittleEndian.AppendUint64(e.b, v) }
func (e *encoder) count(n int)  { e.b = binary.LittleEndian.AppendUint32(e.b, uint32(n)) }
func (e *encoder) text(s string) {
	e.count(len(s))
	e.b = append(e.b, s...)
}

func (e *encoder) int(t byte, v int) {
	if v != 0 {
		e.tag(t)
		e.u64(uint64(v))
	}
}

func (e *encoder) bool(t byte, v bool) {
	if v {
		e.int(t, 1)
	}
}

// A float is left out where its bits are zero, so that -0 and NaN travel.
func (e *encoder) float(t byte, v float64) {
	if bits := math.Float64bits(v); bits != 0 {
		e.tag(t)
		e.u64(bits)
	}
}

func (e *encoder) str(t byte, s string) {
	if s != "" {
		e.tag(t)
		e.text(s)
	}
}

func (e *encoder) bytes(t byte, b []byte) {
	if len(b) > 0 {
		e.tag(t)
		e.count(len(b))
		e.b = append(e.b, b...)
	}
}

func (e *encoder) ints(t byte, vs []int) {
	if len(vs) > 0 {
		e.tag(t)
		e.count(len(vs))
		for _, v := range vs {
			e.u64(uint64(v))
		}
	}
}

func (e *encoder) floats(t byte, vs []float64) {
	if len(vs) > 0 {
		e.tag(t)
		e.count(len(vs))
		for _, v := range vs {
			e.u64(math.Float64bits(v))
		}
	}
}

func (e *encoder) strs(t byte, vs []string) {
	if len(vs) > 0 {
		e.tag(t)
		e.count(len(vs))
		for _, v := range vs {
			e.text(v)
		}
	}
}

// nested encodes a message inside this one, and does so even when it is empty.
func (e *encoder) nested(t byte, fill func(*encoder)) {
	e.tag(t)
	at := len(e.b)
	e.count(0)
	fill(e)
	binary.LittleEndian.PutUint32(e.b[at:], uint32(len(e.b)-at-4))
}

// decoder reads what an encoder wrote. After the first fault everything reads as zero and bad is set.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) take(n int) []byte {
	if d.bad || n > len(d.b) {
		d.bad, d.b = true, nil
		return nil
	}
	out := d.b[:n:n]
	d.b = d.b[n:]
	return out
}

// more returns the next tag, or false at the end.
func (d *decoder) more() (byte, bool) {
	if d.bad || len(d.b) == 0 {
		return 0, false
	}
	return d.take(1)[0], true
}

func (d *decoder) u64() uint64 {
	if b := d.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// count reads the length of a list whose elements take at least size bytes each, all of which must be there.
func (d *decoder) count(size int) int {
	b := d.take(4)
	if b == nil {
		return 0
	}
	n := binary.LittleEndian.Uint32(b)
	if uint64(n)*uint64(size) > uint64(len(d.b)) {
		d.bad, d.b = true, nil
		return 0
	}
	return int(n)
}

func (d *decoder) int() int {
	v := int64(d.u64())
	if int64(int(v)) != v {
		d.bad, d.b = true, nil
	}
	return int(v)
}

func (d *decoder) bool() bool     { return d.u64() != 0 }
func (d *decoder) float() float64 { return math.Float64frombits(d.u64()) }
func (d *decoder) str() string    { return string(d.take(d.count(1))) }

func (d *decoder) bytes() []byte {
	return append([]byte(nil), d.take(d.count(1))...)
}

func (d *decoder) ints() []int {
	vs := make([]int, d.count(8))
	for i := range vs {
		vs[i] = d.int()
	}
	return vs
}

func (d *decoder) floats() []float64 {
	vs := make([]float64, d.count(8))
	for i := range vs {
		vs[i] = d.float()
	}
	return vs
}

func (d *decoder) strs() []string {
	vs := make([]string, d.count(4))
	for i := range vs {
		vs[i] = d.str()
	}
	return vs
}

// message decodes a nested message.
func (d *decoder) message(decode func(*decoder)) {
	n := &decoder{b: d.take(d.count(1)), bad: d.bad}
	decode(n)
	if n.bad {
		d.unknown()
	}
}

func (d *decoder) unknown() { d.bad, d.b = true, nil }

func (d *decoder) err() error {
	if d.bad {
		return errMalformed
	}
	return nil
}

// small reads an enumeration's number.
func (d *decoder) small() uint8 {
	v := d.u64()
	if v > 255 {
		d.bad, d.b = true, nil
		return 0
	}
	return uint8(v)
}
