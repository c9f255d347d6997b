package far

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestLines(t *testing.T) {
	h := Hello{Version: "1.2.3", Protocol: 4, Token: "t", Grace: time.Minute, Device: "cuda:1", Memory: "8GiB", Keep: []uint64{1, ^uint64(0)}}
	var wrote bytes.Buffer
	if err := writeHello(&wrote, h); err != nil {
		t.Fatal(err)
	}
	if got, err := readHello(bufio.NewReader(&wrote)); err != nil || !reflect.DeepEqual(got, h) {
		t.Errorf("%+v, %v", got, err)
	}
	w := Welcome{Version: "1.2.3", Protocol: 4, Instance: "i", Error: "a\nb"}
	wrote.WriteString("Last login: never\r\n\n")
	if err := writeWelcome(&wrote, w); err != nil {
		t.Fatal(err)
	}
	wrote.WriteString("what comes after")
	r := bufio.NewReader(&wrote)
	got, noise, err := readWelcome(r)
	if rest, _ := io.ReadAll(r); err != nil || got != w || noise != "Last login: never\n\n" || string(rest) != "what comes after" {
		t.Errorf("%+v, noise %q, then %q, %v", got, noise, rest, err)
	}
	if !h.same(w) || h.same(Welcome{Version: "1.2.3", Protocol: 5}) || h.same(Welcome{Version: "1.2.4", Protocol: 4}) {
		t.Error("versions")
	}
}

// What never says welcome is not read for ever.
func TestNoWelcome(t *testing.T) {
	for name, text := range map[string]string{
		"nothing": "", "no end of a line": strings.Repeat("x", 2*maxLine), "many lines": strings.Repeat("hello\n", maxNoise), "an end in the middle": marker + `{"attnb":"1"}`,
		"no JSON": marker + "{\n", "a number": marker + "7\n",
	} {
		r := strings.NewReader(text)
		if w, noise, err := readWelcome(bufio.NewReader(r)); err == nil || len(noise) > 2*maxLine {
			t.Errorf("%s: %+v, %d bytes of noise", name, w, len(noise))
		}
		if read := len(text) - r.Len(); read > maxLine+maxNoise {
			t.Errorf("%s: %d bytes were read", name, read)
		}
	}
}

func TestLastLine(t *testing.T) {
	for text, want := range map[string]string{"": "", "a\nb\r\n\n": "b", "a\x1b[2Jb\x07": "a[2Jb", strings.Repeat("é", 200): strings.Repeat("é", 150) + "..."} {
		if got := lastLine(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func FuzzWelcome(f *testing.F) {
	f.Add([]byte(marker + `{"attnb":"1","protocol":1,"instance":"x"}` + "\n"))
	f.Add([]byte("noise\r\n" + marker + `{"error":"\u0000"}` + "\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		w, _, err := readWelcome(bufio.NewReader(bytes.NewReader(text)))
		if err != nil {
			return
		}
		var again bytes.Buffer
		if err := writeWelcome(&again, w); err != nil {
			t.Fatal(err)
		}
		if got, _, err := readWelcome(bufio.NewReader(&again)); err != nil || got != w {
			t.Errorf("%+v became %+v, %v", w, got, err)
		}
	})
}

func FuzzHello(f *testing.F) {
	f.Add([]byte(`{"attnb":"1","protocol":1,"token":"t","grace":60000000000,"keep":[1,18446744073709551615]}` + "\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		h, err := readHello(bufio.NewReader(bytes.NewReader(text)))
		if err != nil {
			return
		}
		if _, err := json.Marshal(h); err != nil {
			t.Error(err)
		}
	})
}
