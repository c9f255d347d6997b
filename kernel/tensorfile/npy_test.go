package tensorfile

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"codeberg.org/sbinet/npyio/npy"
	"gonum.org/v1/gonum/mat"
)

// npyFile is a .npy file with the given header and data.
func npyFile(header string, data []byte) []byte {
	header += "\n"
	b := append([]byte(npyMagic), 1, 0, byte(len(header)), byte(len(header)>>8))
	return append(append(b, header...), data...)
}

func dict(descr, fortran, shape string) string {
	return fmt.Sprintf("{'descr': '%s', 'fortran_order': %s, 'shape': %s, }", descr, fortran, shape)
}

func read(file []byte) ([]int, []float32, error) {
	return readNpy(bytes.NewReader(file), int64(len(file)))
}

// Files written by another implementation.
func TestReadNpyOfAnotherWriter(t *testing.T) {
	for _, v := range []any{[]float32{1, -2, 3.5}, []float64{1, -2, 3.5}} {
		var b bytes.Buffer
		if err := npy.Write(&b, v); err != nil {
			t.Fatal(err)
		}
		shape, data, err := read(b.Bytes())
		if err != nil || !slices.Equal(shape, []int{3}) || !slices.Equal(data, []float32{1, -2, 3.5}) {
			t.Errorf("%T: %v %v %v", v, shape, data, err)
		}
	}
	var b bytes.Buffer
	if err := npy.Write(&b, mat.NewDense(2, 3, []float64{1, 2, 3, 4, 5, 6})); err != nil {
		t.Fatal(err)
	}
	shape, data, err := read(b.Bytes())
	if err != nil || !slices.Equal(shape, []int{2, 3}) || !slices.Equal(data, []float32{1, 2, 3, 4, 5, 6}) {
		t.Errorf("matrix: %v %v %v", shape, data, err)
	}
}

func TestReadNpyOrders(t *testing.T) {
	// [2, 3, 4] with value 100i + 10j + k, first index fastest
	var file []byte
	var want []float32
	for k := range 4 {
		for j := range 3 {
			for i := range 2 {
				bits := math.Float32bits(float32(100*i + 10*j + k))
				file = append(file, byte(bits>>24), byte(bits>>16), byte(bits>>8), byte(bits))
			}
		}
	}
	for i := range 2 {
		for j := range 3 {
			for k := range 4 {
				want = append(want, float32(100*i+10*j+k))
			}
		}
	}
	shape, data, err := read(npyFile(dict(">f4", "True", "(2, 3, 4)"), file))
	if err != nil || !slices.Equal(shape, []int{2, 3, 4}) || !slices.Equal(data, want) {
		t.Errorf("Fortran, big-endian: %v %v %v", shape, data, err)
	}
	// The same keys in another order, double quotes, Python 2's longs.
	odd := `{"shape": (1L,), "descr": "<f4", "fortran_order": False}`
	if shape, data, err := read(npyFile(odd, make([]byte, 4))); err != nil || len(shape) != 1 || len(data) != 1 {
		t.Errorf("%s: %v %v %v", odd, shape, data, err)
	}
	// Version 2 counts its header in 4 bytes.
	v2 := npyFile(dict("<f4", "False", "(1,)"), make([]byte, 4))
	v2[6] = 2
	v2 = slices.Insert(v2, 10, 0, 0)
	if _, data, err := read(v2); err != nil || len(data) != 1 {
		t.Errorf("version 2: %v %v", data, err)
	}
}

func TestReadNpyRefuses(t *testing.T) {
	four := make([]byte, 4)
	whole := npyFile(dict("<f4", "False", "(1,)"), four)
	huge := npyFile(dict("<f4", "False", "(1,)"), four)
	huge[6], huge[8], huge[9] = 2, 0xff, 0xff
	huge = slices.Insert(huge, 10, 0xff, 0xff)
	version := slices.Clone(whole)
	version[6] = 9
	for _, c := range []struct {
		name string
		file []byte
		want string
	}{
		{"nothing", nil, "not a .npy file"},
		{"text", []byte("hello, world"), "not a .npy file"},
		{"cut in the magic", whole[:5], "not a .npy file"},
		{"cut in the header", whole[:30], "the file ends inside its header"},
		{"cut in the data", whole[:len(whole)-1], "3 bytes of data, but shape [1] of f32 needs 4"},
		{"bytes left over", append(slices.Clone(whole), 0), "5 bytes of data, but shape [1] of f32 needs 4"},
		{"version", version, "format version 9 is unknown"},
		{"header of 4 GB", huge, "a header of 4294967295 bytes is more than 65536"},
		{"integers", npyFile(dict("<i4", "False", "(1,)"), four), `dtype "<i4", only f16, f32 and f64 can be loaded`},
		{"objects", npyFile(dict("|O", "False", "(1,)"), four), `dtype "|O", only f16, f32 and f64 can be loaded`},
		{"structured", npyFile("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", four), "a structured dtype, only f16, f32 and f64 can be loaded"},
		{"overflowing", npyFile(dict("<f4", "False", "(4294967296, 4294967296)"), four), "shape [4294967296 4294967296] has more than 4294967296 elements"},
		{"a large size that is not there", npyFile(dict("<f4", "False", "(2147483648,)"), four), "4 bytes of data, but shape [2147483648] of f32 needs 8589934592"},
		{"negative", npyFile(dict("<f4", "False", "(-1,)"), four), "shape [-1] has a negative size"},
		{"empty", npyFile(dict("<f4", "False", "(0, 3)"), nil), "shape [0 3] is empty"},
		{"nine dimensions", npyFile(dict("<f4", "False", "(1, 1, 1, 1, 1, 1, 1, 1, 1)"), four), "9 dimensions, at most 8"},
		{"number too long", npyFile(dict("<f4", "False", "(99999999999999999999,)"), four), "malformed .npy header"},
		{"no shape", npyFile("{'descr': '<f4', 'fortran_order': False}", four), "malformed .npy header"},
		{"key twice", npyFile("{'shape': (1,), 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", four), "malformed .npy header"},
		{"unknown key", npyFile("{'shape': (1,), 'descr': '<f4', 'fortran_order': False, 'x': 1}", four), "malformed .npy header"},
		{"code", npyFile("{'shape': (1,), 'descr': '<f4', 'fortran_order': exit()}", four), "malformed .npy header"},
		{"text behind", npyFile(dict("<f4", "False", "(1,)")+" x", four), "malformed .npy header"},
		{"too large for f32", npyFile(dict("<f8", "False", "(1,)"), []byte{0, 0, 0, 0, 0, 0, 0, 0x7f}), "value 5.486124068793689e+303 of element 0 does not fit f32"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			shape, data, err := read(c.file)
			runtime.ReadMemStats(&after)
			if err == nil || err.Error() != c.want || shape != nil || data != nil {
				t.Errorf("%v %v, error %v, want %q", shape, data, err, c.want)
			}
			if used := after.TotalAlloc - before.TotalAlloc; used > 1<<20 {
				t.Errorf("%d bytes were allocated for it", used)
			}
		})
	}
	if _, _, err := read([]byte("PK")); !errors.Is(err, errNotNpy) {
		t.Errorf("error %v, want errNotNpy", err)
	}
}

func TestLoadFile(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	archive := func(members map[string][]byte) []byte {
		var b bytes.Buffer
		z := zip.NewWriter(&b)
		for name, content := range members {
			w, err := z.Create(name)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write(content); err != nil {
				t.Fatal(err)
			}
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	one := npyFile(dict("<f4", "False", "(1,)"), []byte{0, 0, 0x80, 0x3f})
	single := write("single.npz", archive(map[string][]byte{"a.npy": one, "readme.txt": []byte("x")}))
	pair := archive(map[string][]byte{"a.npy": one, "b.npy": one})
	two := write("two.npz", pair)
	plain := write("plain.npy", one)
	wrong := slices.Clone(pair)
	wrong[bytes.Index(wrong, []byte(npyMagic))+len(one)-1] ^= 0x40 // the last byte of some array
	for _, c := range []struct{ name, path, member, want string }{
		{"npy", plain, "", ""},
		{"npz", two, "b", ""},
		{"the only array", single, "", ""},
		{"which one", two, "", "say which array: it holds a, b"},
		{"no such array", single, "b", `no array "b": it holds a`},
		{"an array of a .npy", plain, "a", `a .npy file holds one array and no "a"`},
		{"empty archive", write("empty.npz", archive(nil)), "a", `no array "a": it holds no arrays`},
		{"cut archive", write("cut.npz", pair[:len(pair)/2]), "a", "a damaged .npz file"},
		{"an array that is none", write("text.npz", archive(map[string][]byte{"a.npy": []byte("text")})), "a", `array "a": not a .npy file`},
	} {
		t.Run(c.name, func(t *testing.T) {
			shape, data, err := Load(c.path, c.member)
			if c.want == "" {
				if err != nil || len(shape) != 1 || data[0] != 1 {
					t.Errorf("%v %v %v", shape, data, err)
				}
				return
			}
			if want := c.path + ": " + c.want; err == nil || err.Error() != want {
				t.Errorf("error %v, want %q", err, want)
			}
		})
	}
	damaged := write("damaged.npz", wrong)
	_, _, errA := Load(damaged, "a")
	_, _, errB := Load(damaged, "b")
	if (errA == nil) == (errB == nil) {
		t.Errorf("one of two arrays is damaged, the errors are %v and %v", errA, errB)
	}
}

func FuzzReadNpy(f *testing.F) {
	f.Add(npyFile(dict("<f4", "False", "(2, 1)"), make([]byte, 8)))
	f.Add(npyFile(dict(">f8", "True", "(1, 3)"), make([]byte, 24)))
	f.Add(npyFile("{'descr': [('a', '<f4')], 'shape': ()}", nil))
	f.Fuzz(func(t *testing.T, file []byte) {
		shape, data, err := read(file)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\r") {
				t.Errorf("error of more than one line: %q", err)
			}
			return
		}
		if n, err := Elements(shape); err != nil || n != len(data) {
			t.Errorf("shape %v, %d values, %v", shape, len(data), err)
		}
	})
}
