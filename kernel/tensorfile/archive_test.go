package tensorfile

import (
	"archive/zip"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// archived is a .npz file with one array.
func archived(f testing.TB, method uint16, name string, file []byte) []byte {
	f.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: method})
	if err == nil {
		_, err = w.Write(file)
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		f.Fatal(err)
	}
	return b.Bytes()
}

// judged checks what Load said of a hostile file: one line of reason, or an array that is whole.
func judged(t *testing.T, shape []int, data []float32, err error) {
	t.Helper()
	if err != nil {
		if strings.ContainsAny(err.Error(), "\n\r") || shape != nil || data != nil {
			t.Errorf("shape %v, %d values, error %q", shape, len(data), err)
		}
		return
	}
	if n, err := Elements(shape); err != nil || n != len(data) {
		t.Errorf("shape %v, %d values, %v", shape, len(data), err)
	}
}

func FuzzNpz(f *testing.F) {
	file := npyFile(dict("<f4", "False", "(2, 1)"), make([]byte, 8))
	f.Add(archived(f, zip.Store, "a.npy", file), "a")
	f.Add(archived(f, zip.Deflate, "a.npy", file), "")
	f.Add(archived(f, zip.Deflate, "a.txt", file), "a")
	f.Fuzz(func(t *testing.T, file []byte, member string) {
		shape, data, err := loadMember(bytes.NewReader(file), int64(len(file)), member)
		judged(t, shape, data, err)
	})
}

// FuzzIndex reads a model in several files by an index, which may name any file.
func FuzzIndex(f *testing.F) {
	dir := f.TempDir()
	weights := safeFile(`{"a":{"dtype":"BF16","shape":[2,1],"data_offsets":[0,4]}}`, 4)
	if err := os.WriteFile(filepath.Join(dir, "w"), weights, 0o600); err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(`{"weight_map":{"a":"w"}}`), "a")
	f.Add([]byte(`{"metadata":{},"weight_map":{"a":"../w","b":"/etc/passwd"}}`), "b")
	index := filepath.Join(dir, "x"+indexEnding)
	f.Fuzz(func(t *testing.T, text []byte, member string) {
		if err := os.WriteFile(index, text, 0o600); err != nil {
			t.Fatal(err)
		}
		shape, data, err := Load(index, member)
		judged(t, shape, data, err)
		if err == nil && len(data) != 2 {
			t.Errorf("%d values of a file that is not there", len(data))
		}
	})
}
