package tensorfile

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"unicode/utf8"
)

// SafeArray is an f32 array of a .safetensors file.
type SafeArray struct {
	Name  string
	Shape []int
	from  int64 // where it lies in the data
}

func (a SafeArray) bytes() (int64, error) {
	n, err := Elements(a.Shape)
	return 4 * int64(n), err
}

// Safe is an open .safetensors file of f32 arrays with metadata. Where a file of that format is none of these, an error says so.
type Safe struct {
	Path     string
	Header   []byte // its length and the JSON, as they lie in the file
	Metadata map[string]string
	Arrays   []SafeArray // in the order in which they lie
	f        *os.File
	size     int64
}

// OpenSafe opens the file and reads its header. Errors are [*Error].
func OpenSafe(path string) (*Safe, error) {
	f, size, err := openRegular(path)
	if err != nil {
		return nil, &Error{path, err}
	}
	s := &Safe{Path: path, f: f, size: size}
	if err := s.readHeader(); err != nil {
		f.Close()
		return nil, &Error{path, err}
	}
	return s, nil
}

// Close closes the file.
func (s *Safe) Close() error { return s.f.Close() }

func (s *Safe) readHeader() error {
	if !isSafetensors(s.f, s.size) {
		return errors.New("not a .safetensors file")
	}
	tensors, base, err := safeHeader(s.f, s.size)
	if err != nil {
		return err
	}
	s.Header = make([]byte, base)
	if _, err := s.f.ReadAt(s.Header, 0); err != nil {
		return bare(err)
	}
	raw, err := object(s.Header[8:])
	if err != nil {
		return fmt.Errorf("malformed header: %w", err)
	}
	if s.Metadata, err = safeMetadata(raw[metadataKey]); err != nil {
		return fmt.Errorf("malformed header: %s: %w", metadataKey, err)
	}
	for name, t := range tensors {
		a := SafeArray{name, t.Shape, t.Offsets[0]}
		switch n, err := a.bytes(); {
		case t.DType != "F32":
			return fmt.Errorf("array %q: dtype %.40q, not F32", name, t.DType)
		case err != nil:
			return fmt.Errorf("array %q: %w", name, err)
		case len(t.Shape) > MaxRank:
			return fmt.Errorf("array %q: %d dimensions, at most %d", name, len(t.Shape), MaxRank)
		case n != t.Offsets[1]-t.Offsets[0]:
			return fmt.Errorf("array %q: %d bytes of data, but shape %v needs %d", name, t.Offsets[1]-t.Offsets[0], t.Shape, n)
		}
		s.Arrays = append(s.Arrays, a)
	}
	slices.SortFunc(s.Arrays, func(a, b SafeArray) int { return int(min(max(a.from-b.from, -1), 1)) })
	return nil
}

// safeMetadata reads the strings of __metadata__, of which none may come twice.
func safeMetadata(text json.RawMessage) (map[string]string, error) {
	all := map[string]string{}
	if text == nil {
		return all, nil
	}
	raw, err := object(text)
	if err != nil {
		return nil, err
	}
	for key, value := range raw {
		var s string
		if err := json.Unmarshal(value, &s); err != nil {
			return nil, fmt.Errorf("%.40q: %s", key, jsonReason(err))
		}
		all[key] = s
	}
	return all, nil
}

// ReadData reads what lies behind the header once, from its beginning to its end, and gives the values of each array to use, or skips
// what want does not ask for. All bytes also go to tee, in their order. The values keep their bits.
func (s *Safe) ReadData(tee io.Writer, want func(name string) bool, use func(a SafeArray, values []float32) error) error {
	base := int64(len(s.Header))
	in := io.TeeReader(io.NewSectionReader(s.f, base, s.size-base), tee)
	at := int64(0)
	skip := func(to int64) error {
		if _, err := io.CopyN(io.Discard, in, to-at); err != nil {
			return errShort(err)
		}
		at = to
		return nil
	}
	for _, a := range s.Arrays {
		if !want(a.Name) {
			continue
		}
		if err := skip(a.from); err != nil {
			return err
		}
		n, err := a.bytes()
		if err != nil {
			return err
		}
		values, err := elements["F32"].read(in, int(n/4))
		if err != nil {
			return fmt.Errorf("array %q: %w", a.Name, err)
		}
		at += n
		if err := use(a, values); err != nil {
			return err
		}
	}
	return skip(s.size - base)
}

func errShort(err error) error {
	if err == io.EOF {
		return errors.New("the file ends too early")
	}
	return bare(err)
}

// SafeHeader is the beginning of a .safetensors file of f32 arrays that lie one behind the other, in the order given: the length of the
// header and the header, in which the metadata come first, with keys in order.
func SafeHeader(metadata map[string]string, arrays []SafeArray) ([]byte, error) {
	var b bytes.Buffer
	b.Write(make([]byte, 8))
	entry := func(key string, value any) error {
		if !utf8.ValidString(key) {
			return fmt.Errorf("array %q: its name is not UTF-8", key)
		}
		k, err := json.Marshal(key)
		if err != nil {
			return err
		}
		v, err := json.Marshal(value)
		if err != nil {
			return err
		}
		if b.Len() == 8 {
			b.WriteByte('{')
		} else {
			b.WriteByte(',')
		}
		b.Write(k)
		b.WriteByte(':')
		b.Write(v)
		return nil
	}
	if err := entry(metadataKey, metadata); err != nil {
		return nil, err
	}
	seen, at := map[string]bool{metadataKey: true}, int64(0)
	for _, a := range arrays {
		n, err := a.bytes()
		switch {
		case err != nil:
			return nil, fmt.Errorf("array %q: %w", a.Name, err)
		case seen[a.Name]:
			return nil, fmt.Errorf("array %q: a file of this format cannot hold that name", a.Name)
		case at > math.MaxInt64-n:
			return nil, errors.New("too many elements for one file")
		}
		seen[a.Name] = true
		if err := entry(a.Name, safeTensor{"F32", a.Shape, [2]int64{at, at + n}}); err != nil {
			return nil, err
		}
		at += n
	}
	b.WriteByte('}')
	for b.Len()%8 != 0 {
		b.WriteByte(' ') // so that the data are aligned
	}
	if b.Len()-8 > maxSafeHeader {
		return nil, fmt.Errorf("a header of %d bytes is more than %d", b.Len()-8, maxSafeHeader)
	}
	header := b.Bytes()
	binary.LittleEndian.PutUint64(header, uint64(len(header)-8))
	return header, nil
}

// WriteFloats writes values as such a file has them.
func WriteFloats(w io.Writer, values []float32) error {
	const step = 1 << 16
	buf := make([]byte, 4*min(len(values), step))
	for len(values) > 0 {
		n := min(len(values), step)
		for i, v := range values[:n] {
			binary.LittleEndian.PutUint32(buf[4*i:], math.Float32bits(v))
		}
		if _, err := w.Write(buf[:4*n]); err != nil {
			return err
		}
		values = values[n:]
	}
	return nil
}
