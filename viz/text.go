package viz

import (
	"fmt"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
)

// typeface is a TrueType font of the Go family: Latin, Greek, Cyrillic, and the common signs.
type typeface struct {
	*sfnt.Font
	advance [256]fixed.Int26_6 // of the first runes, at 1000 pixels an em
	glyph   [256]bool          // which of them the font has
}

var (
	regular = sync.OnceValue(func() *typeface { return parse(goregular.TTF) })
	bold    = sync.OnceValue(func() *typeface { return parse(gobold.TTF) })
)

// parse cannot fail: the fonts are constants of the program.
func parse(ttf []byte) *typeface {
	f, err := sfnt.Parse(ttf)
	if err != nil {
		panic(err)
	}
	t := &typeface{Font: f}
	var b sfnt.Buffer
	for r := range t.advance {
		t.advance[r] = t.measure(&b, rune(r))
		g, err := t.GlyphIndex(&b, rune(r))
		t.glyph[r] = err == nil && g != 0
	}
	return t
}

const em = 1000 // pixels an em at which advances are measured

func (t *typeface) measure(b *sfnt.Buffer, r rune) fixed.Int26_6 {
	g, err := t.GlyphIndex(b, r)
	if err != nil {
		return 0
	}
	a, err := t.GlyphAdvance(b, g, fixed.I(em), font.HintingNone)
	if err != nil {
		return 0
	}
	return a
}

// sign is a character that the font lacks and the labels need: its advance and its outline, in ems, y down.
type sign struct {
	advance float64
	outline [][2]float64
}

const (
	lineBreak = '↵'
	openSpace = '␣'
)

var signs = map[rune]sign{
	lineBreak: {0.8, [][2]float64{{0.06, -0.25}, {0.3, -0.43}, {0.3, -0.29}, {0.63, -0.29}, {0.63, -0.62}, {0.71, -0.62}, {0.71, -0.21}, {0.3, -0.21}, {0.3, -0.07}}},
	openSpace: {0.5, [][2]float64{{0.05, -0.12}, {0.05, 0.12}, {0.45, 0.12}, {0.45, -0.12}, {0.38, -0.12}, {0.38, 0.05}, {0.12, 0.05}, {0.12, -0.12}}},
}

// has reports whether the rune can be shown.
func (t *typeface) has(r rune) bool {
	if r >= 0 && int(r) < len(t.glyph) {
		return t.glyph[r]
	}
	if _, ok := signs[r]; ok {
		return true
	}
	var b sfnt.Buffer
	g, err := t.GlyphIndex(&b, r)
	return err == nil && g != 0
}

// width is the length in pixels of a text at a size in pixels an em.
func (t *typeface) width(s string, size float64) float64 {
	sum := 0 // a long text overflows the 32 bits of fixed.Int26_6
	var b sfnt.Buffer
	for _, r := range s {
		if int(r) < len(t.advance) {
			sum += int(t.advance[r])
		} else if s, ok := signs[r]; ok {
			sum += int(s.advance * em * 64)
		} else {
			sum += int(t.measure(&b, r))
		}
	}
	return float64(sum) / 64 / em * size
}

// fit shortens a text with an ellipsis until it is at most limit pixels long.
func (t *typeface) fit(s string, size, limit float64) string {
	if t.width(s, size) <= limit {
		return s
	}
	const most = 500 // more runes than any line of a picture holds
	runes := []rune(s[:min(len(s), 4*most)])
	for n := min(len(runes)-1, most); n > 0; n-- {
		if short := strings.TrimRight(string(runes[:n]), " ") + "…"; t.width(short, size) <= limit {
			return short
		}
	}
	return "…"
}

// shown makes every character of a label visible: a line break is ↵, a space at either end is ␣, and what is invisible, is not
// valid UTF-8 or has no glyph is escaped as Go and JSON escape it.
func shown(label string, has func(rune) bool) string {
	if label == "" {
		return `""`
	}
	var b strings.Builder
	inner := strings.Trim(label, " ")
	start := strings.Index(label, inner)
	for i := 0; i < len(label); {
		r, n := utf8.DecodeRuneInString(label[i:])
		switch {
		case r == '\n':
			b.WriteRune(lineBreak)
		case r == ' ' && (i < start || i >= start+len(inner)):
			b.WriteRune(openSpace)
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, label[i])
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		case unicode.IsPrint(r) && has(r):
			b.WriteRune(r)
		case r > 0xFFFF:
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		i += n
	}
	return b.String()
}

// printed is a title, name or axis for the picture: as it is, but for what the font lacks.
func printed(t *typeface, s string) string {
	if s = strings.TrimSpace(s); s == "" {
		return ""
	}
	return shown(s, t.has)
}
