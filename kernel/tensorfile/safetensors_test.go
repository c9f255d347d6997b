package tensorfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// safeFile is a .safetensors file with the given header and data.
func safeFile(header string, data int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), make([]byte, data)...)
}

// Files written by the format's own library (safetensors of Python) and by NumPy.
func TestLoadOfAnotherWriter(t *testing.T) {
	half := []float32{0, float32(math.Copysign(0, -1)), 1, -2.5, 0x1p-14, 0x1p-24, 65504, float32(math.Inf(1))}
	for _, c := range []struct {
		file, member string
		shape        []int
		want         []float32
	}{
		{"mixed.safetensors", "half", []int{1, 8}, half},
		{"half.npy", "", []int{1, 8}, half},
		{"mixed.safetensors", "plain", []int{2}, []float32{1.5, -2}},
		{"mixed.safetensors", "wide", []int{2, 3}, []float32{0, 1. / 7, 2. / 7, 3. / 7, 4. / 7, 5. / 7}},
		{"bf16.safetensors", "", []int{4}, []float32{1, -3.140625, 0x1.2cp126, -0x1.b4p-127}},
	} {
		shape, data, err := Load(testdata(t, c.file), c.member)
		if err != nil || !slices.Equal(shape, c.shape) || len(data) != len(c.want) {
			t.Errorf("%s %q: %v %v %v", c.file, c.member, shape, data, err)
			continue
		}
		for i := range data {
			if math.Float32bits(data[i]) != math.Float32bits(c.want[i]) {
				t.Errorf("%s %q: element %d is %g, want %g", c.file, c.member, i, data[i], c.want[i])
			}
		}
	}
}

func testdata(t *testing.T, file string) string {
	path, err := filepath.Abs(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Every f16 but the NaNs, against a definition that shares no code: sign * 2^(exponent-15) * (1 + fraction/1024).
func TestFloat16(t *testing.T) {
	for h := range 1 << 16 {
		got := float16Bits(binary.LittleEndian, []byte{byte(h), byte(h >> 8)})
		e, m := h>>10&31, h&1023
		want := math.Pow(2, float64(e-15)) * (1 + float64(m)/1024)
		switch {
		case e == 0:
			want = math.Pow(2, -14) * float64(m) / 1024
		case e == 31 && m != 0:
			if !math.IsNaN(got) {
				t.Errorf("%04x is %g", h, got)
			}
			continue
		case e == 31:
			want = math.Inf(1)
		}
		if h>>15 == 1 {
			want = -want
			if want == 0 {
				want = math.Copysign(0, -1)
			}
		}
		if math.Float64bits(got) != math.Float64bits(want) {
			t.Errorf("%04x is %g, want %g", h, got, want)
		}
	}
}

func TestSafetensorsRefuses(t *testing.T) {
	one := `{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`
	entry := func(dtype, shape, offsets string) string {
		return fmt.Sprintf(`{"a":{"dtype":%q,"shape":%s,"data_offsets":%s}}`, dtype, shape, offsets)
	}
	long := safeFile(one, 4)
	binary.LittleEndian.PutUint64(long, math.MaxUint64)
	for _, c := range []struct {
		name string
		file []byte
		want string
	}{
		{"nothing", nil, "the file ends inside its header"},
		{"cut", safeFile(one, 4)[:20], "the file ends inside its header"},
		{"a header of 16 exabytes", long, "a header of 18446744073709551615 bytes is more than 104857600"},
		{"no JSON", safeFile("hello", 0), "malformed header: no JSON object"},
		{"cut JSON", safeFile(one[:30], 4), "malformed header: it ends too early"},
		{"a list", safeFile("[]", 0), "malformed header: no JSON object"},
		{"twice", safeFile(strings.TrimSuffix(one, "}")+","+one[1:], 4), `malformed header: "a" twice`},
		{"text behind", safeFile(one+"x", 4), "malformed header: text behind it"},
		{"cut data", safeFile(one, 3), `"a" lies at 0 to 4 of 3 bytes of data`},
		{"backwards", safeFile(entry("F32", "[1]", "[4,0]"), 4), `"a" lies at 4 to 0 of 4 bytes of data`},
		{"below 0", safeFile(entry("F32", "[1]", "[-4,0]"), 4), `"a" lies at -4 to 0 of 4 bytes of data`},
		{"no number", safeFile(entry("F32", `["x"]`, "[0,4]"), 4), `malformed header: "a": string where int belongs`},
		{"overflow", safeFile(entry("F32", "[4294967296,4294967296]", "[0,4]"), 4), `array "a": shape [4294967296 4294967296] has more than 4294967296 elements`},
		{"another size", safeFile(entry("F32", "[2]", "[0,4]"), 4), `array "a": 4 bytes of data, but shape [2] of f32 needs 8`},
		{"integers", safeFile(entry("I64", "[1]", "[0,8]"), 8), `array "a": dtype "I64", only F16, BF16, F32 and F64 can be loaded`},
		{"nine dimensions", safeFile(entry("F32", "[1,1,1,1,1,1,1,1,1]", "[0,4]"), 4), `array "a": 9 dimensions, at most 8`},
		{"shared bytes", safeFile(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}}`, 6), "two arrays share the same bytes"},
		{"too large for f32", append(safeFile(entry("F64", "[1]", "[0,8]"), 0), 0, 0, 0, 0, 0, 0, 0, 0x7f), `array "a": value 5.486124068793689e+303 of element 0 does not fit f32`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			shape, data, err := readSafetensors(bytes.NewReader(c.file), int64(len(c.file)), "a")
			runtime.ReadMemStats(&after)
			if err == nil || err.Error() != c.want || shape != nil || data != nil {
				t.Errorf("%v %v, error %v, want %q", shape, data, err, c.want)
			}
			if used := after.TotalAlloc - before.TotalAlloc; used > 1<<20 {
				t.Errorf("%d bytes were allocated for it", used)
			}
		})
	}
}

func TestShards(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("part-2.safetensors", string(safeFile(`{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, 4)))
	index := write("model.safetensors.index.json", `{"metadata":{},"weight_map":{"w":"part-2.safetensors","u":"part-1.safetensors","x":"../secret","y":"/etc/passwd","z":"part-2.safetensors"}}`)
	if shape, data, err := Load(index, "w"); err != nil || len(shape) != 1 || data[0] != 0 {
		t.Errorf("w: %v %v %v", shape, data, err)
	}
	for member, want := range map[string]string{
		"":  "say which array: it holds u, w, x, y, z",
		"v": `no array "v": it holds u, w, x, y, z`,
		"u": "part-1.safetensors: no such file",
		"x": `the index names a file "../secret" that does not lie beside it`,
		"y": `the index names a file "/etc/passwd" that does not lie beside it`,
		"z": `part-2.safetensors: no array "z": it holds w`,
	} {
		_, _, err := Load(index, member)
		if err == nil || err.Error() != index+": "+want {
			t.Errorf("%q: error %v, want %q", member, err, want)
		}
		if member == "u" && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q: %v does not say that the file is not there", member, err)
		}
	}
	for name, content := range map[string]string{"a.index.json": "{", "b.index.json": "{}"} {
		if _, _, err := Load(write(name, content), "w"); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func FuzzSafetensors(f *testing.F) {
	f.Add(safeFile(`{"__metadata__":{"a":"b"},"a":{"dtype":"BF16","shape":[2,1],"data_offsets":[0,4]}}`, 4))
	f.Add(safeFile(`{"a":{"dtype":"F64","shape":[],"data_offsets":[0,8]},"b":{"dtype":"F16","shape":[0],"data_offsets":[8,8]}}`, 8))
	f.Fuzz(func(t *testing.T, file []byte) {
		shape, data, err := readSafetensors(bytes.NewReader(file), int64(len(file)), "a")
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\r") {
				t.Errorf("error of more than one line: %q", err)
			}
			return
		}
		if n, err := Elements(shape); err != nil || n != len(data) || 2*n > len(file) {
			t.Errorf("shape %v, %d values of %d bytes, %v", shape, len(data), len(file), err)
		}
	})
}
