package cell

import (
	"fmt"
	"strings"
	"testing"
)

func TestIsComplete(t *testing.T) {
	for _, k := range []struct{ code, state, indent string }{
		{"", "complete", ""},
		{"x := 1", "complete", ""},
		{"func f() {", "incomplete", "\t"},
		{"func f() {\n\tif x {", "incomplete", "\t\t"},
		{"func f() {\n}", "complete", ""},
		{"func f() }", "invalid", ""},
		{"f(]", "invalid", ""},
		{"a := `raw", "incomplete", ""},
		{"a := `raw\n{`", "complete", ""},
		{"/* a comment", "incomplete", ""},
		{"// a comment {", "complete", ""},
		{"s := \"{\"", "complete", ""},
		{"r := '{'", "complete", ""},
		{"x := 1 +", "incomplete", "\t"},
		{"x.", "incomplete", "\t"},
		{"i++", "complete", ""},
		{"%%\nfmt.Println(1)", "incomplete", ""},
		{"%%\nfmt.Println(1)\n", "complete", ""},
		{"%%", "incomplete", ""},
		{"!ls {", "complete", ""},
		{"!ls \\", "incomplete", ""},
		{"%env A B", "complete", ""},
		{"%%bash\necho {", "incomplete", ""},
		{"%%bash\necho {\n", "complete", ""},
	} {
		if state, indent := IsComplete(k.code); state != k.state || indent != k.indent {
			t.Errorf("%q: %s %q, want %s %q", k.code, state, indent, k.state, k.indent)
		}
	}
}

func TestSegments(t *testing.T) {
	const report = "REPORT"
	for _, k := range []struct {
		code string
		want []string // code of each segment; S is a shell line's, with what precedes the command left out
	}{
		{"x := 1", []string{"go:x := 1"}},
		{"!a\n!b\n%%\nf()", []string{"sh:!a\n\n\n", "sh:\n!b\n\n", "go:\n\n%%\nf()"}},
		{"%env A 1\n!a\n%env B 2\nvar x = 1", []string{"sh:%env A 1\n!a\n\n", "go:\n\n%env B 2\nvar x = 1"}},
		{"%args x\n!a\n%%\nf()", []string{"sh:\n!a\n\n", "go:%args x\n\n%%\nf()"}},
		{"!a \\\nb\nvar x = 1", []string{"sh:!a  b\n\n", "go:\n\nvar x = 1"}},
		{"% \n!\t \n%\\", []string{"\n\n"}},
		{"%help", []string{"%help"}},
		{"packages := 1\npackage main\npackage", []string{"go: packages := 1\npackage main\npackage"}},
		{"!*pwd", []string{"sh:!*pwd"}},
		{"!a\n%tensors\n%%\nf()", []string{"sh:!a\n\n\n", "own:tensors", "go:\n\n%%\nf()"}},
		{"%tensors  x", []string{"own:tensors  x"}},
	} {
		var got []string
		for _, s := range Parse(k.code).Segments(report, map[string]bool{"tensors": true}) {
			code := s.Code
			switch {
			case s.Shell:
				at, end := strings.Index(code, userTMPDIR), strings.Index(code, "exec </dev/null; ")
				if at < 0 || end < at || !strings.Contains(code[at:end], "trap 'REPORT' EXIT; ") {
					t.Errorf("%q: no trap in %q", k.code, code)
					continue
				}
				code = "sh:" + code[:at] + code[end+len("exec </dev/null; "):]
			case s.Own != nil:
				code = "own:" + s.Own.Text
			case s.Go:
				code = "go:" + code
			}
			got = append(got, code)
		}
		if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", k.want) {
			t.Errorf("%q:\n got %q\nwant %q", k.code, got, k.want)
		}
	}
}

func TestScriptKeepsItsWords(t *testing.T) {
	code := Parse("%%script python3 -c \"a \\\"b\\\\\" \nbody").Segments("REPORT", nil)[0].Code
	first, rest, _ := strings.Cut(code, "\n")
	words := splitWords(first)
	want := []string{"%%script", "/bin/sh", "-c", userTMPDIR + `"$@"; (exit $?); REPORT`, "sh", "python3", "-c", `a "b\`}
	if fmt.Sprintf("%q", words) != fmt.Sprintf("%q", want) || rest != "body" {
		t.Errorf("got %q, want %q; body %q", words, want, rest)
	}
}

// Locate finds lines through gonb's merged file, in which declarations are sorted and written anew.
func TestLocate(t *testing.T) {
	first := Parse("!ls\nvar (\n\ta = 1\n\tb, c = f(), 2\n)\n\nfunc f() int {\n\treturn 1\n}\n\nfunc init_x() {\n\tf()\n}")
	second := Parse("type T struct {\n\tx int\n}\n\n%%\nf()\npanic(1)")
	decls := NewDeclarations().With(first, 1)
	mainGo := "package main\n\nimport (\n\t\"flag\"\n)\n\ntype T struct {\n\tx int\n}\n\nvar (\n\ta = 1\n\tb, c = f(), 2\n)\n\n" +
		"func f() int {\n\treturn 1\n}\n\nfunc init() {\n\tf()\n}\n\nfunc main() {\n\tflag.Parse()\n\tf()\n\tpanic(1)\n\n}\n"
	for text, want := range map[string]Place{
		"x int":        {2, 1, "\tx int"},
		"a = 1":        {1, 2, "\ta = 1"},
		"b, c = f()":   {1, 3, "\tb, c = f(), 2"},
		"return 1":     {1, 7, "\treturn 1"},
		"panic(1)":     {2, 6, "panic(1)"},
		"flag.Parse()": {2, 4, "%%"},
		"\tf()\n}":     {1, 11, "\tf()"},
	} {
		line := 1 + strings.Count(mainGo[:strings.Index(mainGo, text)], "\n")
		if got, ok := decls.Locate(mainGo, line, second, 2); !ok || got != want {
			t.Errorf("%q at line %d: %+v %v, want %+v", text, line, got, ok, want)
		}
	}
	for _, line := range []int{-1, 0, 1, 4, 1000} {
		if got, ok := decls.Locate(mainGo, line, second, 2); ok {
			t.Errorf("line %d: %+v, want none", line, got)
		}
	}
}

func TestReplay(t *testing.T) {
	decls := NewDeclarations().With(Parse("func init_a() { one() }\nfunc one() {}\nfunc two() {}\nvar x, _ = 1, 2"), 1).Without("two")
	file := "package main\n\nimport (\n\tm \"math\"\n)\n\nvar (\n\tx, _ = 1, 2\n)\n\nfunc init() { one() }\n\nfunc one() {}\n\nfunc two() {}\n\nfunc main() {\n}\n"
	const want = "import m \"math\"\n\nvar x, _ = 1, 2\n\nfunc init_a() { one() }\n\nfunc one() {}\n\n"
	if got := decls.Replay(file); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestIdentifier(t *testing.T) {
	for _, k := range []struct{ code, want string }{ // | is the cursor; the result ends at the character that it found
		{"fmt.Pri|nt", "fmt.Prin"},
		{"fmt.Print|", "fmt.Print"},
		{"fmt.Print(|)", "fmt.Print"},
		{"fmt.Print(a, |)", "fmt.Print"},
		{"fmt.Print(g(1), [2]int{}, |)", "fmt.Print"},
		{"f(\n\n|", "f"},
		{"é|", "é"},
		{"a|, b := f()", "a"},
	} {
		at := strings.Index(k.code, "|")
		code := strings.Replace(k.code, "|", "", 1)
		text := Parse(code)
		c, ok := text.Identifier(text.At(code, len([]rune(k.code[:at]))))
		before := strings.Join(append(append([]string(nil), text.Lines[:c.Line]...), text.Lines[c.Line][:c.Column]), "\n")
		got := before + string([]rune(text.Lines[c.Line][c.Column:])[0])
		if !ok || got != k.want {
			t.Errorf("%q: %q %v, want %q", k.code, got, ok, k.want)
		}
	}
	for _, code := range []string{"", "   ", "(", "}{", ", ", "\n\n", "%env A", "\"\"", "))"} {
		text := Parse(code)
		for at := -1; at < len(code)+2; at++ {
			if c, ok := text.Identifier(text.At(code, at)); ok {
				t.Errorf("%q at %d: found one at %+v", code, at, c)
			}
		}
	}
}

// The cursor goes to gonb in UTF-16 units and comes back in characters.
func TestUnits(t *testing.T) {
	code := "!ls\ns := \"é😀\"; fmt.Pr"
	text := Parse(code)
	c := text.At(code, len([]rune(code)))
	if c != (Cursor{1, len("s := \"é😀\"; fmt.Pr")}) {
		t.Errorf("cursor %+v", c)
	}
	sent, at := text.Lookup(c)
	if want := "\ns := \"é😀\"; fmt.Pr"; sent != want || at != len("\ns := \"..\"; fmt.Pr")+1 {
		t.Errorf("sent %q at %d", sent, at)
	}
	if n := text.Replaced(Cursor{1, len("s := \"é😀")}, 3); n != 2 {
		t.Errorf("3 units back are %d characters, want 2", n)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"%%\nf()", "!a \\\nb", "% ", "//gonb:%%\nx", "func f() {\n}", "%%script \"a\\\"\nx", "\xff\r\n%"} {
		f.Add(s, 3)
	}
	f.Fuzz(func(t *testing.T, code string, at int) {
		text := Parse(code)
		IsComplete(code)
		c := text.At(code, at%(len(code)+2))
		text.Lookup(c)
		text.Identifier(c)
		if text.Check(nil) != nil {
			return
		}
		for _, s := range text.Segments("r", nil) {
			if n := strings.Count(s.Code, "\n"); text.IsGo() && n != len(text.Lines)-1 {
				t.Fatalf("%q: a segment of %d lines, want %d", code, n+1, len(text.Lines))
			}
		}
		file, from := text.Compose()
		if strings.Count(file, "\n") != len(from) {
			t.Fatalf("%q: %d lines, and places for %d", code, strings.Count(file, "\n"), len(from))
		}
		NewDeclarations().With(text, 1).Locate(file, at, text, 1)
	})
}
