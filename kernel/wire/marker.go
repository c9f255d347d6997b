package wire

import "bytes"

// Kinds of markers.
const (
	MarkStart   = "start"   // the launcher started the program; no argument
	MarkDisplay = "display" // publish the display of this ID
	MarkFail    = "fail"    // the cell stops by a notebook error: its message in hex
	MarkExit    = "exit"    // how the program ended: a code, or "signal NAME"
)

// MaxMarker is the most bytes a marker may have, from ESC to ESC \. What is longer is text.
const MaxMarker = 16 << 10

// AppendMarker appends ESC ] attnb ; nonce ; kind ; arg ESC \ to dst. kind is lower-case ASCII letters; arg holds no
// control character and the whole fits MaxMarker, else a [Scanner] takes it for text.
func AppendMarker(dst []byte, nonce, kind, arg string) []byte {
	dst = append(dst, "\x1b]attnb;"...)
	dst = append(dst, nonce...)
	dst = append(dst, ';')
	dst = append(dst, kind...)
	dst = append(dst, ';')
	dst = append(dst, arg...)
	return append(dst, "\x1b\\"...)
}

// Marker is one control sequence found in a cell's stdout.
type Marker struct{ Kind, Arg string }

// Piece is either text, or a marker where Marker.Kind is not empty.
type Piece struct {
	Text   []byte
	Marker Marker
}

// Scanner takes markers out of a stream that arrives in chunks. However the stream is cut, the markers are the
// same, in the same places of the same text. Only markers with its nonce count. The zero value is not usable.
type Scanner struct {
	prefix []byte
	held   []byte // could be the beginning of a marker; empty, or begins with ESC
}

// NewScanner returns a scanner for markers with this nonce, at the start of a stream.
func NewScanner(nonce string) *Scanner {
	return &Scanner{prefix: append(append([]byte("\x1b]attnb;"), nonce...), ';')}
}

// Feed scans the next chunk and returns what is decided, in order. A tail that may become a marker is held back (at
// most MaxMarker bytes). The pieces do not refer to chunk's memory.
func (s *Scanner) Feed(chunk []byte) []Piece {
	buf := append(s.held, chunk...)
	var pieces []Piece
	text := 0 // buf[text:at] is text not yet emitted
	at := 0
	for at < len(buf) {
		i := bytes.IndexByte(buf[at:], 0x1b)
		if i < 0 {
			at = len(buf)
			break
		}
		at += i
		m, n, state := s.parse(buf[at:])
		switch state {
		case notMarker:
			at++
			continue
		case isMarker:
			if at > text {
				pieces = append(pieces, Piece{Text: bytes.Clone(buf[text:at])})
			}
			pieces = append(pieces, Piece{Marker: m})
			at += n
			text = at
			continue
		}
		break // partial
	}
	if at > text {
		pieces = append(pieces, Piece{Text: bytes.Clone(buf[text:at])})
	}
	s.held = append([]byte(nil), buf[at:]...)
	return pieces
}

// Flush ends the stream: what was held back is text after all.
func (s *Scanner) Flush() []Piece {
	if len(s.held) == 0 {
		return nil
	}
	held := s.held
	s.held = nil
	return []Piece{{Text: held}}
}

type parseState uint8

const (
	notMarker parseState = iota
	partialMarker
	isMarker
)

// parse looks at b, which begins with ESC, and returns the marker there and its length. The verdict depends on the
// stream alone: whoever sees more of it never gets another one.
func (s *Scanner) parse(b []byte) (Marker, int, parseState) {
	n := min(len(b), len(s.prefix))
	if !bytes.Equal(b[:n], s.prefix[:n]) {
		return Marker{}, 0, notMarker
	}
	if n < len(s.prefix) {
		return Marker{}, 0, partialMarker
	}
	semi := -1 // index of the ; after KIND
	for i := n; i < len(b) && i < MaxMarker-1; i++ {
		c := b[i]
		switch {
		case c == 0x1b && i+1 == len(b):
			return Marker{}, 0, partialMarker
		case c == 0x1b && b[i+1] == '\\' && i > n:
			if semi < 0 {
				return Marker{Kind: string(b[n:i])}, i + 2, isMarker
			}
			return Marker{Kind: string(b[n:semi]), Arg: string(b[semi+1 : i])}, i + 2, isMarker
		case c < 0x20 || c == 0x7f:
			return Marker{}, 0, notMarker
		case semi < 0 && c == ';' && i > n:
			semi = i
		case semi < 0 && (c < 'a' || c > 'z'):
			return Marker{}, 0, notMarker
		}
	}
	if len(b) >= MaxMarker-1 {
		return Marker{}, 0, notMarker
	}
	return Marker{}, 0, partialMarker
}

// Hex encodes text for a marker's argument.
func Hex(text string) string {
	const digits = "0123456789abcdef"
	b := make([]byte, 0, 2*len(text))
	for i := 0; i < len(text); i++ {
		b = append(b, digits[text[i]>>4], digits[text[i]&15])
	}
	return string(b)
}

// Unhex decodes a marker's argument; ok is false where it is not hex.
func Unhex(arg string) (text string, ok bool) {
	if len(arg)%2 != 0 {
		return "", false
	}
	b := make([]byte, 0, len(arg)/2)
	for i := 0; i < len(arg); i += 2 {
		hi, lo := nibble(arg[i]), nibble(arg[i+1])
		if hi > 15 || lo > 15 {
			return "", false
		}
		b = append(b, hi<<4|lo)
	}
	return string(b), true
}

func nibble(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10
	}
	return 255
}
