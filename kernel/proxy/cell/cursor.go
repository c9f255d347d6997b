package cell

import (
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Cursor is a place in a cell: a line and a byte in it, both from 0.
type Cursor struct{ Line, Column int }

// At converts a position that counts characters, as the protocol does. A position outside of the text is moved into it.
func (t *Text) At(code string, position int) Cursor {
	position = max(position, 0)
	c := Cursor{}
	for code != "" && position > 0 {
		if strings.HasPrefix(code, "\r\n") { // one line break in Lines, two characters here
			code = code[1:]
			position--
			continue
		}
		r, n := utf8.DecodeRuneInString(code)
		code = code[n:]
		position--
		if r == '\n' {
			c.Line++
			c.Column = 0
		} else {
			c.Column += n
		}
	}
	if c.Line < len(t.Lines) {
		c.Column = min(c.Column, len(t.Lines[c.Line]))
	}
	return c
}

// Lookup returns the text to send to gonb with a request about the cursor, and the cursor in it in UTF-16 units, which
// is what gonb counts in. Commands are left out: gonb crashes on some of them.
func (t *Text) Lookup(c Cursor) (code string, position int) {
	lines := make([]string, len(t.Lines))
	for i, line := range t.Lines {
		if !t.used[i] || startsMain(line) {
			lines[i] = line
		}
	}
	before := append(append([]string(nil), lines[:c.Line]...), lines[c.Line][:min(c.Column, len(lines[c.Line]))])
	return strings.Join(lines, "\n"), utf16Len(strings.Join(before, "\n"))
}

func utf16Len(s string) int { return len(utf16.Encode([]rune(s))) }

// Replaced converts the length in UTF-16 units of what a completion replaces before the cursor into characters.
func (t *Text) Replaced(c Cursor, units int) int {
	before := []rune(t.Lines[c.Line][:c.Column])
	n := 0
	for units > 0 && n < len(before) {
		n++
		units -= utf16.RuneLen(before[len(before)-n])
	}
	return n
}

// Identifier moves a cursor onto the name that help is wanted for: the one it stands on or behind, or the function whose
// arguments it is among. gonb looks for it too, and where there is none it never ends.
func (t *Text) Identifier(c Cursor) (Cursor, bool) {
	if c.Line >= len(t.Lines) || t.used[c.Line] {
		return c, false
	}
	depth := 0
	at := c
	for first := true; ; first = false {
		line := t.Lines[at.Line]
		if at.Column < len(line) {
			r, _ := utf8.DecodeRuneInString(line[at.Column:])
			switch {
			case isName(r) && depth == 0:
				return at, true
			case isName(r):
			case first && r != ',' && r != ')': // what stands behind the cursor does not count
			case r == ')' || r == ']' || r == '}':
				depth++
			case r == ',' && depth == 0:
				depth++ // back to what opens the list
			case (r == '(' || r == '[' || r == '{') && depth > 0:
				depth--
			}
		}
		switch {
		case at.Column > 0:
			_, n := utf8.DecodeLastRuneInString(line[:min(at.Column, len(line))])
			at.Column -= n
		default:
			for at.Line--; at.Line >= 0 && t.used[at.Line]; at.Line-- {
			}
			if at.Line < 0 {
				return t.touching(c)
			}
			at.Column = len(t.Lines[at.Line])
		}
	}
}

// touching is the name that ends at the cursor.
func (t *Text) touching(c Cursor) (Cursor, bool) {
	r, n := utf8.DecodeLastRuneInString(t.Lines[c.Line][:min(c.Column, len(t.Lines[c.Line]))])
	if n == 0 || !isName(r) {
		return c, false
	}
	c.Column -= n
	return c, true
}

func isName(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }
