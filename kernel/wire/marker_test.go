package wire

import (
	"fmt"
	"strings"
	"testing"
)

const nonce = "0123456789abcdef0123456789abcdef"

// trace writes a stream's pieces so that text cut in two reads as text in one piece.
func trace(pieces []Piece) string {
	var b strings.Builder
	for _, p := range pieces {
		if p.Marker.Kind != "" {
			fmt.Fprintf(&b, "<%q %q>", p.Marker.Kind, p.Marker.Arg)
		} else {
			b.Write(p.Text)
		}
	}
	return b.String()
}

func scan(t *testing.T, stream string, cut func(i int) bool) string {
	t.Helper()
	s := NewScanner(nonce)
	var pieces []Piece
	start := 0
	for i := 1; i <= len(stream); i++ {
		if i == len(stream) || cut(i) {
			pieces = append(pieces, s.Feed([]byte(stream[start:i]))...)
			start = i
		}
	}
	if len(s.held) > MaxMarker {
		t.Fatalf("holds %d bytes, more than MaxMarker", len(s.held))
	}
	return trace(append(pieces, s.Flush()...))
}

func mark(kind, arg string) string { return string(AppendMarker(nil, nonce, kind, arg)) }

func TestScanner(t *testing.T) {
	prefix := "\x1b]attnb;" + nonce + ";"
	long := strings.Repeat("a", MaxMarker)
	fits := MaxMarker - len(mark("fail", ""))
	for _, c := range []struct{ name, stream, want string }{
		{"text", "plain\n", "plain\n"},
		{"one", "a" + mark("display", "d1") + "b", `a<"display" "d1">b`},
		{"adjacent", mark("start", "") + mark("exit", "signal killed"), `<"start" ""><"exit" "signal killed">`},
		{"no argument", prefix + "start\x1b\\", `<"start" "">`},
		{"semicolon in the argument", mark("fail", "a;b"), `<"fail" "a;b">`},
		{"colours are text", "\x1b[31mred\x1b[0m", "\x1b[31mred\x1b[0m"},
		{"another nonce", "\x1b]attnb;ffff;display;1\x1b\\", "\x1b]attnb;ffff;display;1\x1b\\"},
		{"no kind", prefix + ";x\x1b\\", prefix + ";x\x1b\\"},
		{"empty", prefix + "\x1b\\", prefix + "\x1b\\"},
		{"upper-case kind", prefix + "Fail;x\x1b\\", prefix + "Fail;x\x1b\\"},
		{"newline inside", prefix + "fail;a\n\x1b\\", prefix + "fail;a\n\x1b\\"},
		{"unfinished", prefix + "fail;a", prefix + "fail;a"},
		{"escape before another", "\x1b\x1b" + mark("display", "2"), "\x1b\x1b" + `<"display" "2">`},
		{"marker inside an unfinished one", prefix + "fail;" + mark("display", "3"), prefix + "fail;" + `<"display" "3">`},
		{"largest", mark("fail", long[:fits]), `<"fail" "` + long[:fits] + `">`},
		{"one too long", mark("fail", long[:fits+1]), mark("fail", long[:fits+1])},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := scan(t, c.stream, func(int) bool { return false }); got != c.want {
				t.Errorf("whole: got %q, want %q", got, c.want)
			}
			if got := scan(t, c.stream, func(i int) bool { return len(c.stream) < 500 || i%997 < 2 || i > len(c.stream)-4 }); got != c.want {
				t.Errorf("cut: got %q, want %q", got, c.want)
			}
		})
	}
}

func FuzzScanner(f *testing.F) {
	for _, s := range []string{"x", mark("display", "1"), "\x1b" + mark("exit", "3") + "\x1b]attnb;", mark("fail", Hex("é\n"))[5:]} {
		f.Add([]byte(s), uint64(0x5a5a))
	}
	f.Fuzz(func(t *testing.T, data []byte, cuts uint64) {
		// "N" stands for the nonce, so that the fuzzer can make real markers.
		stream := strings.ReplaceAll(string(data), "N", "\x1b]attnb;"+nonce+";")
		whole := scan(t, stream, func(int) bool { return false })
		some := scan(t, stream, func(i int) bool { return cuts>>(i%64)&1 == 1 })
		if whole != some {
			t.Fatalf("%q: whole %q, cut by %x %q", stream, whole, cuts, some)
		}
	})
}

func TestHex(t *testing.T) {
	const text = "RoPE: \"q\" é\x00\n"
	if got, ok := Unhex(Hex(text)); !ok || got != text {
		t.Errorf("got %q, %v", got, ok)
	}
	for _, bad := range []string{"0", "0g", "AB"} {
		if got, ok := Unhex(bad); ok {
			t.Errorf("Unhex(%q) = %q, want not ok", bad, got)
		}
	}
}
