package toolchain

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const onceCell = `package main

import (
	"fmt"

	"github.com/attnb/attnb/kernel/attn"
)

const (
	first = iota
	size
)

type shape struct{ rows int }

func (s shape) area() int { return s.rows * size }

var base = shape{rows: 3}

func fill() []float32 { return make([]float32, base.area()) }

func unrelated() { fmt.Println("hi") }

var q = attn.Once("q", func() attn.Tensor { return attn.FromSlice(fill()) })

var k = attn.Once("a \"k=", func() attn.Tensor { return attn.Load("x.npz", "k") })

func main() { unrelated() }
`

func hashesOf(t *testing.T, text string) map[string]string {
	t.Helper()
	s := newSources()
	if err := s.add("main.go", []byte(text)); err != nil {
		t.Fatal(err)
	}
	return s.hashes()
}

func TestOnceHashesFollowTheText(t *testing.T) {
	before := hashesOf(t, onceCell)
	if len(before) != 2 || len(before["q"]) != 32 || len(before["a \"k="]) != 32 {
		t.Fatalf("hashes: %v", before)
	}
	for _, c := range []struct {
		what, old, new string
		q, k           bool // must change
	}{
		{"nothing", "", "", false, false},
		{"its own text", `"x.npz"`, `"y.npz"`, false, true},
		{"a function that it calls", "make([]float32, base.area())", "make([]float32, 7)", true, false},
		{"a variable at two removes", "rows: 3", "rows: 4", true, false},
		{"a method of a variable's type", "s.rows * size", "s.rows + size", true, false},
		{"a constant group at four removes", "first = iota", "first = iota + 1", true, false},
		{"a function that it does not call", `"hi"`, `"ho"`, false, false},
		{"white space and comments", "func fill()", "// fills\n\nfunc   fill( )", false, false},
		{"order of declarations", "func unrelated() {", "func another() {}\nfunc unrelated() {", false, false},
		{"an import that it does not use", `"fmt"`, "\"fmt\"\n\tfill2 \"math\"", false, false},
	} {
		text := strings.Replace(onceCell, c.old, c.new, 1)
		after := hashesOf(t, text)
		if changed := after["q"] != before["q"]; changed != c.q {
			t.Errorf("after a change of %s: q changed: %v", c.what, changed)
		}
		if changed := after["a \"k="] != before["a \"k="]; changed != c.k {
			t.Errorf("after a change of %s: k changed: %v", c.what, changed)
		}
	}
}

func TestOnceIsRecognised(t *testing.T) {
	for _, c := range []struct {
		imports, call string
		name          string // "no" where there is none
	}{
		{`"` + attnPath + `"`, `attn.Once("x", nil)`, "x"},
		{`a "` + attnPath + `"`, `a.Once("x", nil)`, "x"},
		{`. "` + attnPath + `"`, `Once("x", nil)`, "x"},
		{`"` + attnPath + `"`, "attn.Once(`x`, nil)", "x"},
		{`"` + attnPath + `"`, `attn.Once[int]("x", nil)`, "x"},
		{`"` + attnPath + `"`, `attn.Once(name, nil)`, ""},
		{`"` + attnPath + `"`, `attn.Once("a;b", nil)`, ""},
		{`"` + attnPath + `"`, `attn.Once("it's", nil)`, ""},
		{`"` + attnPath + `"`, `attn.Twice("x", nil)`, "no"},
		{`"` + attnPath + `"`, `attn.Once()`, "no"},
		{`"example.org/attn"`, `attn.Once("x", nil)`, "no"},
		{`"` + attnPath + `"`, `Once("x", nil)`, "no"},
	} {
		got := hashesOf(t, "package main\n\nimport "+c.imports+"\n\nvar v = "+c.call+"\n")
		want := 1
		if c.name == "no" {
			want = 0
		}
		if _, ok := got[c.name]; len(got) != want || ok != (want == 1) {
			t.Errorf("import %s; %s: recognised: %v", c.imports, c.call, got)
		}
	}
}

func TestOnceFlag(t *testing.T) {
	dir := t.TempDir()
	if got := onceFlag(dir); got != "" {
		t.Errorf("no files: %q", got)
	}
	main := filepath.Join(dir, "main.go")
	if err := os.WriteFile(main, []byte(onceCell), 0o644); err != nil {
		t.Fatal(err)
	}
	hashes := hashesOf(t, onceCell)
	want := "-X '" + attnPath + ".onceHashes=a \"k==" + hashes["a \"k="] + ";q=" + hashes["q"] + "'"
	if got := onceFlag(dir); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if err := os.WriteFile(filepath.Join(dir, "other.go"), []byte("package main\nfunc {"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := onceFlag(dir); got != "" {
		t.Errorf("a file that does not parse: %q", got)
	}
}
