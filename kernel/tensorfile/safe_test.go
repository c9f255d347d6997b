package tensorfile

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What is written is read again, by both readers, bit by bit and in its order; the header is aligned.
func TestSafeRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.safetensors")
	arrays := []SafeArray{{Name: "b <1>\"\n", Shape: []int{2, 3}}, {Name: "a", Shape: []int{1}}, {Name: "ü", Shape: []int{70000, 1}}}
	values := map[string][]float32{"a": {float32(math.Inf(-1))}, "ü": make([]float32, 70000), "b <1>\"\n": nil}
	for _, bits := range []uint32{0x7f800001, 0xffc00123, 0x80000000, 1, 0, 0x7f7fffff} {
		values["b <1>\"\n"] = append(values["b <1>\"\n"], math.Float32frombits(bits))
	}
	header, err := SafeHeader(map[string]string{"k": "v\"", "": ""}, arrays)
	if err != nil || len(header)%8 != 0 {
		t.Fatal(err, len(header))
	}
	file := bytes.NewBuffer(slices.Clone(header))
	for _, a := range arrays {
		if err := WriteFloats(file, values[a.Name]); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(path, file.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	same := func(got, want []float32) bool {
		return slices.EqualFunc(got, want, func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) })
	}
	for _, a := range arrays {
		if shape, got, err := Load(path, a.Name); err != nil || !slices.Equal(shape, a.Shape) || !same(got, values[a.Name]) {
			t.Errorf("%q: %v, %v", a.Name, shape, err)
		}
	}
	s, err := OpenSafe(path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if !bytes.Equal(s.Header, header) || len(s.Metadata) != 2 || s.Metadata["k"] != "v\"" {
		t.Errorf("%q, %v", s.Header, s.Metadata)
	}
	for _, skipped := range []string{"none", "a", "ü"} {
		var all bytes.Buffer
		var order []string
		err = s.ReadData(&all, func(name string) bool { return name != skipped }, func(a SafeArray, got []float32) error {
			order = append(order, a.Name)
			if !same(got, values[a.Name]) {
				t.Errorf("%q has other values", a.Name)
			}
			return nil
		})
		if want := slices.DeleteFunc([]string{"b <1>\"\n", "a", "ü"}, func(n string) bool { return n == skipped }); err != nil || !slices.Equal(order, want) || !bytes.Equal(all.Bytes(), file.Bytes()[len(header):]) {
			t.Errorf("without %q: %q, %v", skipped, order, err)
		}
	}
	enough := errors.New("enough")
	if err := s.ReadData(&bytes.Buffer{}, func(string) bool { return true }, func(SafeArray, []float32) error { return enough }); err != enough {
		t.Error(err)
	}
	// A file that is cut while it is read.
	if err := os.Truncate(path, int64(len(header)+10)); err != nil {
		t.Fatal(err)
	}
	if err := s.ReadData(&bytes.Buffer{}, func(name string) bool { return name == "ü" }, nil); err == nil || err.Error() != "the file ends too early" {
		t.Error(err)
	}
}

func TestSafeRefuses(t *testing.T) {
	for _, c := range []struct {
		arrays []SafeArray
		want   string
	}{
		{[]SafeArray{{Name: "a", Shape: []int{1}}, {Name: "a", Shape: []int{1}}}, `array "a": a file of this format cannot hold that name`},
		{[]SafeArray{{Name: metadataKey, Shape: []int{1}}}, `array "__metadata__": a file of this format cannot hold that name`},
		{[]SafeArray{{Name: "a\xff", Shape: []int{1}}}, `array "a\xff": its name is not UTF-8`},
		{[]SafeArray{{Name: "a", Shape: []int{0}}}, `array "a": shape [0] is empty`},
	} {
		if header, err := SafeHeader(nil, c.arrays); header != nil || err == nil || err.Error() != c.want {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
	if _, err := SafeHeader(map[string]string{"x": strings.Repeat("x", maxSafeHeader)}, nil); err == nil || !strings.HasPrefix(err.Error(), "a header of ") {
		t.Error(err)
	}
	path := filepath.Join(t.TempDir(), "x")
	for text, want := range map[string]string{
		`{"__metadata__":{"a":1}}`:                                               "malformed header: __metadata__: \"a\": number where string belongs",
		`{"__metadata__":{"a":"1","a":"2"}}`:                                     "malformed header: __metadata__: \"a\" twice",
		`{"__metadata__":[]}`:                                                    "malformed header: __metadata__: no JSON object",
		`{"a":{"dtype":"F16","shape":[2],"data_offsets":[0,4]}}`:                 `array "a": dtype "F16", not F32`,
		`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}`:                 `array "a": 4 bytes of data, but shape [2] needs 8`,
		`{"a":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,4]}}`: `array "a": 9 dimensions, at most 8`,
		`{"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}}`:                `array "a": shape [-1] has a negative size`,
	} {
		if err := os.WriteFile(path, safeFile(text, 4), 0o600); err != nil {
			t.Fatal(err)
		}
		if s, err := OpenSafe(path); s != nil || err == nil || err.Error() != path+": "+want {
			t.Errorf("%s\ngot  %v\nwant %s", text, err, want)
		}
	}
}
