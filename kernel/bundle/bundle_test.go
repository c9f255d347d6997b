package bundle

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func write(t *testing.T, file, content string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
}

// Equal contents give equal bytes, wherever and whenever they were made, with modes and links kept.
func TestArchiveIsReproducible(t *testing.T) {
	var made [2]bytes.Buffer
	for i := range made {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "bin/attnb-cell"), "program", 0o700)
		write(t, filepath.Join(dir, "src/a.go"), "package a", 0o600)
		write(t, filepath.Join(dir, "left/b.go"), "package b", 0o600)
		if err := os.Symlink("../attnb-cell", filepath.Join(dir, "bin/go")); err != nil {
			t.Fatal(err)
		}
		a := archive{}
		a.add("note", []byte("in memory"))
		if err := a.addTree("x", dir, func(rel string, _ bool) bool { return rel != "left" }); err != nil {
			t.Fatal(err)
		}
		if n, err := a.size(); err != nil || n != int64(len("programpackage ain memory")) {
			t.Errorf("size %d, %v", n, err)
		}
		if err := a.writeTar(&made[i], "root"); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(made[0].Bytes(), made[1].Bytes()) {
		t.Error("two archives of the same contents differ")
	}
	var got []string
	for r := tar.NewReader(&made[0]); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		content, _ := io.ReadAll(r)
		got = append(got, strings.Join([]string{h.FileInfo().Mode().String(), h.Name, h.Linkname, string(content)}, "|"))
	}
	want := []string{
		"-rw-r--r--|root/note||in memory", "-rwxr-xr-x|root/x/bin/attnb-cell||program",
		"Lrw-r--r--|root/x/bin/go|../attnb-cell|", "-rw-r--r--|root/x/src/a.go||package a",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A bundle that cannot be written leaves nothing, and what was there stays.
func TestFailureLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "b.tar")
	write(t, file, "old", 0o644)
	a := archive{"gone": {path: filepath.Join(dir, "no such file")}}
	if _, err := a.writeFile(t.Context(), file, "python3"); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "gone") {
		t.Errorf("error %v", err)
	}
	if _, err := a.writeFile(t.Context(), filepath.Join(dir, "b.tar.xz"), "python-of-no-kind"); err == nil {
		t.Error("compressed without Python")
	}
	left, err := os.ReadDir(dir)
	if content, _ := os.ReadFile(file); err != nil || len(left) != 1 || string(content) != "old" {
		t.Errorf("left %v, with %q, %v", left, content, err)
	}
}

func TestUnpacked(t *testing.T) {
	for member, want := range map[string]string{
		"zmq/__init__.py":                          "python/3.12/zmq/__init__.py",
		"zmq/tests/test_socket.py":                 "",
		"zmq/backend/_zmq.pyi":                     "",
		"six.py":                                   "python/3.12/six.py",
		"a-1.dist-info/METADATA":                   "python/3.12/a-1.dist-info/METADATA",
		"nb-7.data/data/share/jupyter/lab/x.j2":    "python/data/share/jupyter/lab/x.j2",
		"nb-7.data/platlib/nb/fast.so":             "python/3.12/nb/fast.so",
		"nb-7.data/scripts/jupyter-nb":             "",
		"testpath/test.py":                         "python/3.12/testpath/test.py",
		"tornado/test/http_test.py":                "",
		"beautifulsoup4-4.15.0.dist-info/licenses": "python/3.12/beautifulsoup4-4.15.0.dist-info/licenses",
	} {
		if got := unpacked("python", "3.12", member); got != want {
			t.Errorf("%s goes to %q, want %q", member, got, want)
		}
	}
}

func TestPinned(t *testing.T) {
	file := filepath.Join(t.TempDir(), "requirements.txt")
	write(t, file, "# Jupyter\nanywidget==0.11.0\njupyter_client==8.10.0\nnbclient==0.11.0\nnbconvert==7.17.2\nnbformat==5.11.1\n", 0o644)
	got, err := pinned(file)
	if want := "jupyter_client==8.10.0 nbclient==0.11.0 nbconvert==7.17.2 nbformat==5.11.1"; err != nil || strings.Join(got, " ") != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	write(t, file, "nbclient==0.11.0\n", 0o644)
	if got, err := pinned(file); err == nil {
		t.Errorf("three are missing, and got %q", got)
	}
}

// What is left out of the standard library is what the target does not build.
func TestBuildable(t *testing.T) {
	dir := t.TempDir()
	for file, want := range map[string]bool{
		"os/file.go": true, "os/file_test.go": false, "os/file_windows.go": false, "os/file_linux.go": true, "os/asm_arm64.s": false,
		"os/asm_amd64.s": true, "os/textflag.h": true, "race/race.syso": false, "tzdata/zone.zip": true,
	} {
		write(t, filepath.Join(dir, file), "package x", 0o644)
		if got := buildable(dir, file, false); got != want {
			t.Errorf("%s: %v, want %v", file, got, want)
		}
	}
	write(t, filepath.Join(dir, "net/cgo.go"), "//go:build cgo\n\npackage net\n", 0o644)
	write(t, filepath.Join(dir, "net/pure.go"), "//go:build !cgo\n\npackage net\n", 0o644)
	if buildable(dir, "net/cgo.go", false) || !buildable(dir, "net/pure.go", false) {
		t.Error("bundles are without cgo")
	}
	if buildable(dir, "os/testdata", true) || !buildable(dir, "os", true) {
		t.Error("test data is left out, packages are not")
	}
}

func TestTimeless(t *testing.T) {
	a := timeless([]byte("v1 aa bb                 1234  1764500000000000000\n"))
	b := timeless([]byte("v1 aa bb                 1234  1764599999999999999\n"))
	if !bytes.Equal(a, b) || len(a) != len("v1 aa bb ")+20+1+20+1 || !bytes.HasPrefix(a, []byte("v1 aa bb                 1234 ")) {
		t.Errorf("%q, %q", a, b)
	}
}

// A module goes where the go command looks for it, without tests and without packages that nothing needs.
func TestAddModule(t *testing.T) {
	proxy := t.TempDir()
	file := filepath.Join(proxy, "example.com/!up/m/@v/v1.2.0.zip")
	var z bytes.Buffer
	w := zip.NewWriter(&z)
	for _, name := range []string{"go.mod", "LICENSE", "used/u.go", "used/u_test.go", "used/testdata/big.bin", "unused/x.go", "README.md"} {
		f, err := w.Create("example.com/Up/m@v1.2.0/" + name)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = f.Write([]byte("text of " + name))
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	write(t, file, z.String(), 0o644)
	a := archive{}
	if err := a.addModule("mod", proxy, file, map[string]bool{"example.com/Up/m/used": true}); err != nil {
		t.Fatal(err)
	}
	want := []string{"go.mod", "LICENSE", "used/u.go"}
	for _, name := range want {
		if e, ok := a["mod/example.com/!up/m@v1.2.0/"+name]; !ok || string(e.content) != "text of "+name {
			t.Errorf("%s is missing", name)
		}
	}
	sum := a["mod/cache/download/example.com/!up/m/@v/v1.2.0.ziphash"].content
	if len(a) != len(want)+1 || !strings.HasPrefix(string(sum), "h1:") {
		t.Errorf("%d entries, sum %q", len(a), sum)
	}
	if err := a.addModule("mod", proxy, filepath.Join(proxy, "stray.zip"), nil); err == nil {
		t.Error("a stray zip was taken for a module")
	}
}

func TestCommandRefuses(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"extra"}, 2, `attnb bundle: unexpected "extra"`},
		{[]string{"--nope"}, 2, "not defined: -nope"},
		{nil, 1, "is no attnb installation"},
	} {
		var out, errs bytes.Buffer
		if code := Command(c.args, "1", &out, &errs); code != c.code || !strings.Contains(errs.String(), c.says) {
			t.Errorf("%q: status %d, said %q; want %d and %q", c.args, code, errs.String(), c.code, c.says)
		}
	}
}

// Readers get notebooks, their data and models; the programs that made a model stay behind.
func TestReadable(t *testing.T) {
	for file, want := range map[string]bool{
		"01-first-attention.ipynb": true, "data/neox_layer.npz": true, "data/helper.py": true, ".ipynb_checkpoints": false, "data/__pycache__": false,
		"models/induction/model.safetensors": true, "models/induction/config.json": true, "models/induction/README.md": true,
		"models/induction/training.csv": true, "models/induction/loss.png": true, "models/induction/train.py": false,
		"models/induction/golden.npz": true, "models/induction/.cache": false,
	} {
		if got := readable(file, false); got != want {
			t.Errorf("%s: %v, want %v", file, got, want)
		}
	}
}
