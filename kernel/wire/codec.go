package wire

import (
	"encoding/binary"
	"errors"
	"math"
)

// errMalformed is all that reading says: the two ends are the same version, so it means a fault, not a user's mistake.
var errMalformed = errors.New("wire: malformed message")

// codec carries a message's fields in one of two directions, so that each message lists its fields once, in a method
// fields. A field is a tag and a value; a zero value is left out. Numbers are 8 bytes, strings and lists begin with a u32 count.
//
// Reading, fields is called for each tag that comes, and the field of that tag takes its value. After the first fault
// everything reads as zero and bad is set.
type codec struct {
	writing bool
	b       []byte // what is written, or what is left to read
	tag     byte   // of the value that comes; 0 once it is taken
	bad     bool
}

// message is what lists its fields.
type message[T any] interface {
	*T
	fields(*codec)
}

func encode[T any, M message[T]](v *T) []byte {
	c := &codec{writing: true, b: make([]byte, 0, 128)}
	M(v).fields(c)
	return c.b
}

func decode[T any, M message[T]](b []byte, v *T) error {
	c := &codec{b: b}
	read[T, M](c, v)
	if c.bad {
		return errMalformed
	}
	return nil
}

func read[T any, M message[T]](c *codec, v *T) {
	for !c.bad && len(c.b) > 0 {
		c.tag = c.take(1)[0]
		known := c.tag != 0
		if M(v).fields(c); !known || c.tag != 0 { // no field took it
			c.fail()
		}
	}
}

func (c *codec) fail() { c.bad, c.b, c.tag = true, nil, 0 }

// here reports whether the field of tag t is to be carried now: reading, when it comes; writing, unless it is zero.
func (c *codec) here(t byte, zero bool) bool {
	if !c.writing {
		if c.tag != t || c.bad {
			return false
		}
		c.tag = 0
		return true
	}
	if zero {
		return false
	}
	c.b = append(c.b, t)
	return true
}

func (c *codec) take(n int) []byte {
	if c.bad || n > len(c.b) {
		c.fail()
		return nil
	}
	out := c.b[:n:n]
	c.b = c.b[n:]
	return out
}

func (c *codec) u64(v uint64) uint64 {
	if c.writing {
		c.b = binary.LittleEndian.AppendUint64(c.b, v)
		return v
	}
	if b := c.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// count carries the length of a list whose elements take at least size bytes each, all of which must be there.
func (c *codec) count(n, size int) int {
	if c.writing {
		c.b = binary.LittleEndian.AppendUint32(c.b, uint32(n))
		return n
	}
	b := c.take(4)
	if b == nil {
		return 0
	}
	there := binary.LittleEndian.Uint32(b)
	if uint64(there)*uint64(size) > uint64(len(c.b)) {
		c.fail()
		return 0
	}
	return int(there)
}

func (c *codec) number(v *int) {
	n := int64(c.u64(uint64(*v)))
	if int64(int(n)) != n {
		c.fail()
		n = 0
	}
	*v = int(n)
}

func (c *codec) text(s *string) {
	n := c.count(len(*s), 1)
	if c.writing {
		c.b = append(c.b, *s...)
		return
	}
	*s = string(c.take(n))
}

func (c *codec) int(t byte, v *int) {
	if c.here(t, *v == 0) {
		c.number(v)
	}
}

func (c *codec) bool(t byte, v *bool) {
	if c.here(t, !*v) {
		*v = c.u64(1) != 0
	}
}

// A float is left out where its bits are zero, so that -0 and NaN travel.
func (c *codec) float(t byte, v *float64) {
	if bits := math.Float64bits(*v); c.here(t, bits == 0) {
		*v = math.Float64frombits(c.u64(bits))
	}
}

func (c *codec) str(t byte, s *string) {
	if c.here(t, *s == "") {
		c.text(s)
	}
}

func (c *codec) bytes(t byte, b *[]byte) {
	if !c.here(t, len(*b) == 0) {
		return
	}
	n := c.count(len(*b), 1)
	if c.writing {
		c.b = append(c.b, *b...)
		return
	}
	*b = append([]byte(nil), c.take(n)...)
}

func (c *codec) ints(t byte, vs *[]int) {
	elements(c, t, vs, 8, c.number)
}

func (c *codec) floats(t byte, vs *[]float64) {
	elements(c, t, vs, 8, func(v *float64) { *v = math.Float64frombits(c.u64(math.Float64bits(*v))) })
}

func (c *codec) strs(t byte, vs *[]string) {
	elements(c, t, vs, 4, c.text)
}

func elements[T any](c *codec, t byte, vs *[]T, size int, each func(*T)) {
	if !c.here(t, len(*vs) == 0) {
		return
	}
	n := c.count(len(*vs), size)
	if !c.writing {
		*vs = make([]T, n)
	}
	for i := range *vs {
		each(&(*vs)[i])
	}
}

// enum carries an enumeration's number.
func enum[T ~uint8](c *codec, t byte, v *T) {
	if !c.here(t, *v == 0) {
		return
	}
	n := c.u64(uint64(*v))
	if n > 255 {
		c.fail()
		n = 0
	}
	*v = T(n)
}

// nested carries a message inside this one, also when it is empty.
func nested[T any, M message[T]](c *codec, t byte, v *T) {
	if c.here(t, false) {
		inside[T, M](c, v)
	}
}

// optional carries a message that may be absent.
func optional[T any, M message[T]](c *codec, t byte, v **T) {
	if !c.here(t, *v == nil) {
		return
	}
	if !c.writing {
		*v = new(T)
	}
	inside[T, M](c, *v)
}

// list carries messages, each under the tag.
func list[T any, M message[T]](c *codec, t byte, vs *[]T) {
	if c.writing {
		for i := range *vs {
			nested[T, M](c, t, &(*vs)[i])
		}
		return
	}
	if c.here(t, false) {
		var v T
		inside[T, M](c, &v)
		*vs = append(*vs, v)
	}
}

func inside[T any, M message[T]](c *codec, v *T) {
	if c.writing {
		at := len(c.b)
		c.count(0, 0)
		M(v).fields(c)
		binary.LittleEndian.PutUint32(c.b[at:], uint32(len(c.b)-at-4))
		return
	}
	n := &codec{b: c.take(c.count(0, 1)), bad: c.bad}
	read[T, M](n, v)
	if n.bad {
		c.fail()
	}
}
