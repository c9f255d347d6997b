package tensorfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// The .npy reader is our own: the file is the user's but the header is believed by the allocator, so it is parsed
// strictly, and nothing is allocated for a size that the file does not have. Format: NumPy NEP 1.

// MaxRank is how many dimensions an array may have.
const MaxRank = 8

const (
	npyMagic     = "\x93NUMPY"
	maxNpyHeader = 64 << 10
	maxElements  = 1 << 32 // 16 GiB of f32
)

// errNotNpy says that the file does not begin as a .npy file does.
var errNotNpy = errors.New("not a .npy file")

// npyHeader describes the array of a .npy file.
type npyHeader struct {
	element
	fortran bool
	shape   []int
	count   int
}

// readNpy reads an array as f32 in C order. size is the number of bytes that r has in all.
func readNpy(r io.Reader, size int64) (shape []int, data []float32, err error) {
	h, used, err := readNpyHeader(r)
	if err != nil {
		return nil, nil, err
	}
	if want := int64(h.count) * int64(h.size); size-used != want {
		return nil, nil, fmt.Errorf("%d bytes of data, but shape %v of %s needs %d", size-used, h.shape, h.name, want)
	}
	data, err = h.read(r, h.count)
	if err != nil {
		return nil, nil, err
	}
	if h.fortran && len(h.shape) > 1 {
		data = fromFortran(data, h.shape)
	}
	return h.shape, data, nil
}

// readNpyHeader returns the header and the number of bytes that it took.
func readNpyHeader(r io.Reader) (npyHeader, int64, error) {
	var head [8]byte
	if _, err := io.ReadFull(r, head[:]); err != nil || string(head[:6]) != npyMagic {
		return npyHeader{}, 0, errNotNpy
	}
	sizeBytes := 2
	switch head[6] {
	case 1:
	case 2, 3:
		sizeBytes = 4
	default:
		return npyHeader{}, 0, fmt.Errorf("format version %d is unknown", head[6])
	}
	var length [4]byte
	if _, err := io.ReadFull(r, length[:sizeBytes]); err != nil {
		return npyHeader{}, 0, errNotNpy
	}
	n := binary.LittleEndian.Uint32(length[:])
	if n > maxNpyHeader {
		return npyHeader{}, 0, fmt.Errorf("a header of %d bytes is more than %d", n, maxNpyHeader)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(r, text); err != nil {
		return npyHeader{}, 0, errors.New("the file ends inside its header")
	}
	h, err := parseNpyHeader(string(text))
	return h, int64(8 + sizeBytes + int(n)), err
}

// parseNpyHeader reads the Python dict literal, with its three keys in any order.
func parseNpyHeader(text string) (npyHeader, error) {
	p := &literal{text: text}
	var h npyHeader
	seen := map[string]bool{}
	p.expect("{")
	for !p.accept("}") && !p.bad {
		key := p.quoted()
		p.expect(":")
		if seen[key] {
			p.bad = true
		}
		seen[key] = true
		switch key {
		case "descr":
			descr := p.quoted()
			if p.bad {
				return h, errors.New("a structured dtype, only f16, f32 and f64 can be loaded")
			}
			var ok bool
			if h.element, ok = npyElement(descr); !ok {
				return h, fmt.Errorf("dtype %.40q, only f16, f32 and f64 can be loaded", descr)
			}
		case "fortran_order":
			h.fortran = p.accept("True")
			if !h.fortran {
				p.expect("False")
			}
		case "shape":
			h.shape = p.tuple()
		default:
			p.bad = true
		}
		if !p.accept(",") {
			p.expect("}")
			break
		}
	}
	if p.bad || len(seen) != 3 || strings.TrimSpace(p.text) != "" {
		return h, errors.New("malformed .npy header")
	}
	if len(h.shape) > MaxRank {
		return h, fmt.Errorf("%d dimensions, at most %d", len(h.shape), MaxRank)
	}
	n, err := Elements(h.shape)
	h.count = n
	return h, err
}

func npyElement(descr string) (element, bool) {
	if len(descr) != 3 || descr[0] != '<' && descr[0] != '>' {
		return element{}, false
	}
	e, ok := elements[map[string]string{"f2": "F16", "f4": "F32", "f8": "F64"}[descr[1:]]]
	if descr[0] == '>' {
		e.order = binary.BigEndian
	}
	return e, ok
}

// Elements is the number of elements of a shape, none of whose sizes may be below 1.
func Elements(shape []int) (int, error) {
	n := 1
	for _, d := range shape {
		switch {
		case d < 0:
			return 0, fmt.Errorf("shape %v has a negative size", shape)
		case d == 0:
			return 0, fmt.Errorf("shape %v is empty", shape)
		case n > maxElements/d:
			return 0, fmt.Errorf("shape %v has more than %d elements", shape, maxElements)
		}
		n *= d
	}
	return n, nil
}

// literal scans the few Python literals of a header. After a fault bad is set and nothing matches.
type literal struct {
	text string
	bad  bool
}

func (p *literal) accept(token string) bool {
	p.text = strings.TrimLeft(p.text, " \n\t")
	if p.bad || !strings.HasPrefix(p.text, token) {
		return false
	}
	p.text = p.text[len(token):]
	return true
}

func (p *literal) expect(token string) {
	if !p.accept(token) {
		p.bad = true
	}
}

func (p *literal) quoted() string {
	quote := "'"
	if p.accept(`"`) {
		quote = `"`
	} else {
		p.expect("'")
	}
	s, rest, ok := strings.Cut(p.text, quote)
	if p.bad || !ok {
		p.bad = true
		return ""
	}
	p.text = rest
	return s
}

func (p *literal) tuple() []int {
	shape := []int{}
	p.expect("(")
	for !p.accept(")") && !p.bad {
		end := strings.IndexAny(p.text, ",) ")
		if end < 0 {
			p.bad = true
			break
		}
		n, err := strconv.Atoi(strings.TrimSuffix(p.text[:end], "L")) // Python 2 wrote 3L
		if err != nil {
			p.bad = true
			break
		}
		p.text = p.text[end:]
		shape = append(shape, n)
		if !p.accept(",") {
			p.expect(")")
			break
		}
	}
	return shape
}

// fromFortran reorders data whose first index runs fastest so that the last one does.
func fromFortran(data []float32, shape []int) []float32 {
	out := make([]float32, len(data))
	strides := make([]int, len(shape)) // of each index in data
	n := 1
	for i, d := range shape {
		strides[i] = n
		n *= d
	}
	index := make([]int, len(shape))
	at := 0
	for i := range out {
		out[i] = data[at]
		for k := len(shape) - 1; k >= 0; k-- {
			index[k]++
			at += strides[k]
			if index[k] < shape[k] {
				break
			}
			at -= shape[k] * strides[k]
			index[k] = 0
		}
	}
	return out
}
