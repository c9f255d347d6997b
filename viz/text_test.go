package viz

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestShown(t *testing.T) {
	for label, want := range map[string]string{
		"cat": "cat", " cat": "␣cat", "a b": "a b", "  ": "␣␣", "x ": "x␣", "": `""`, "\n": "↵", "\n\n": "↵↵", "a\tb\r": `a\tb\r`,
		`it's "q" \`: `it's "q" \`, "</script>": "</script>", "Ġthe": "Ġthe", "é λ Ж": "é λ Ж",
		"שלום": `\u05e9\u05dc\u05d5\u05dd`, "🙂": `\U0001f642`, "中": `\u4e2d`, "\x00": `\u0000`, "\xffa": `\xffa`, "\u202eevil": `\u202eevil`,
		"\u200b": `\u200b`, "\u00a0x": `\u00a0x`, "e\u0301": `e\u0301`, "\ufffd": "\ufffd",
	} {
		if got := shown(label, regular().has); got != want {
			t.Errorf("%q: %q, want %q", label, got, want)
		}
	}
	// a page's fonts have more; what is invisible or turns the text round stays escaped
	for label, want := range map[string]string{"שלום": "שלום", "🙂": "🙂", "\u202eevil": `\u202eevil`, "\xff": `\xff`} {
		if got := visible(label); got != want {
			t.Errorf("%q: %q, want %q", label, got, want)
		}
	}
}

func FuzzShown(f *testing.F) {
	for _, s := range append([]string{"\xff\xfe", "\u202e", "\n "}, sentence...) {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := shown(s, regular().has)
		if got == "" || !utf8.ValidString(got) {
			t.Errorf("%q: %q", s, got)
		}
		for _, r := range got {
			if !regular().has(r) {
				t.Errorf("%q: %q holds %q, which the font lacks", s, got, r)
			}
		}
	})
}

func TestFit(t *testing.T) {
	f := regular()
	long := "a rather long label for a token"
	for _, limit := range []float64{10, 40, 100, 200} {
		short := f.fit(long, 20, limit)
		if w := f.width(short, 20); w > limit && short != "…" {
			t.Errorf("%q is %g wide, limit %g", short, w, limit)
		}
	}
	if got := f.fit("cat", 20, 1000); got != "cat" {
		t.Errorf("%q", got)
	}
	if w := f.width("MM", 20); w != 2*f.width("M", 20) || w < 20 {
		t.Errorf("MM is %g wide", w)
	}
}

// A label of any length costs no more than a line of the picture.
func TestLongLabel(t *testing.T) {
	h := attention(1, 3)
	h.RowLabels = []string{strings.Repeat("x", 1<<20), strings.Repeat("\x00", 1<<18), "c"}
	h.Title = strings.Repeat("long ", 1<<16)
	if w := regular().width(h.RowLabels[0], tickSize); w < 1e7 {
		t.Errorf("2^20 letters are %g pixels wide", w)
	}
	p, err := h.Picture()
	if err != nil {
		t.Fatal(err)
	}
	if p.Width > 1000 || p.Height > 1000 {
		t.Errorf("%d x %d", p.Width, p.Height)
	}
}
