package proxy

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// However a stream is cut, its characters come whole.
func TestCharacters(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	text := []byte("a\u00e4\u20ac\U0001F600-\xff\xfe-\xe2\x82-\xf0\x9f\x98 \xc3\xa4 end \xe2\x82")
	want := "a\u00e4\u20ac\U0001F600-\ufffd-\ufffd-\ufffd \u00e4 end \ufffd"
	for range 500 {
		var c characters
		var got strings.Builder
		for rest := text; len(rest) > 0; {
			n := 1 + random.IntN(min(6, len(rest)))
			got.WriteString(c.whole(rest[:n]))
			rest = rest[n:]
		}
		got.WriteString(c.rest())
		// A run of what is no UTF-8 may be cut where it was read.
		if squeezed := strings.ReplaceAll(got.String(), "\ufffd\ufffd", "\ufffd"); squeezed != want {
			t.Fatalf("got %q, want %q", squeezed, want)
		}
		if c.rest() != "" {
			t.Fatal("the rest came twice")
		}
	}
}

func TestProgramOutputIsWhole(t *testing.T) {
	c := start(t)
	const n = 30_000
	id := c.execute(fmt.Sprintf("%%%%\nfor i := range %d {\nfmt.Println(strings.Repeat(\"\u20ac\u00e4\U0001F600\", 1+i%%7), i)\n}\nfmt.Fprint(os.Stderr, \"\u00e4\\xc3\")", n))
	r := c.result(id, 60*time.Second)
	var want strings.Builder
	for i := range n {
		fmt.Fprintln(&want, strings.Repeat("\u20ac\u00e4\U0001F600", 1+i%7), i)
	}
	if got := r.stream("stdout"); got != want.String() {
		t.Errorf("%d bytes with %d damaged characters, want %d bytes", len(got), strings.Count(got, string(utf8.RuneError)), want.Len())
	}
	if got := r.stream("stderr"); got != "\u00e4\ufffd" {
		t.Errorf("stderr %q", got)
	}
	// One byte at a time, and a marker between the bytes of one character.
	c.prints("%%\nfor _, b := range []byte(\"\u20ac\U0001F600\") {\nos.Stdout.Write([]byte{b})\ntime.Sleep(5*time.Millisecond)\n}", "\u20ac\U0001F600")
	if got := c.run("%%\n" + shows + "fmt.Print(\"\\xe2\\x82\")\nshow(\"x\")\nfmt.Print(\"\\xac.\")").shown(); got != "\ufffd<shown x>\ufffd." {
		t.Errorf("got %q", got)
	}
}

// A program that reads finds nothing, or what the client types where the cell asks for that.
func TestInputOfPrograms(t *testing.T) {
	c := start(t)
	file := filepath.Join(t.TempDir(), "out.txt")
	const read = "%%\nb, err := io.ReadAll(os.Stdin)\nfmt.Println(len(b), err)"
	c.prints(read, "0 <nil>\n")
	c.prints("%capture "+file+"\n"+read, "0 <nil>\n")
	c.prints("%with_inputs\n"+read, "0 <nil>\n") // the client answers no requests

	id := c.send(c.shell, "execute_request", map[string]any{"allow_stdin": true,
		"code": "%with_password\n%%\nin := bufio.NewScanner(os.Stdin)\nfor range 2 {\nin.Scan()\nfmt.Println(\"got\", in.Text())\n}"})
	for _, word := range []string{"one", "two"} {
		frames, err := c.stdin.Receive()
		if err != nil {
			t.Fatal(err)
		}
		m, err := c.codec.Parse(frames)
		if err != nil || m.Header.Type != "input_request" || parentID(m) != id || !bytes.Contains(m.Content, []byte(`"password":true`)) {
			t.Fatalf("%v %s", err, m.Content)
		}
		c.send(c.stdin, "input_reply", map[string]any{"value": word})
	}
	if r := c.result(id, 30*time.Second); r.stream("stdout") != "got one\ngot two\n" {
		t.Errorf("%s %q", r.Status, r.stream("stdout"))
	}
}

// The streams of a program end with it, whoever else holds them open; what is captured goes into its file.
func TestStreamsEnd(t *testing.T) {
	c := start(t)
	c.prints("!echo up", "up\n")
	before := len(openFiles(t))
	began := time.Now()
	c.prints("%%\nb := exec.Command(\"setsid\", \"sleep\", \"20\")\nb.Stdout, b.Stderr = os.Stdout, os.Stderr\nb.Start()\nfmt.Println(\"done\")", "done\n")
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("the cell took %v: it waited for what it had left behind", took)
	}
	for range 20 {
		c.prints("%%\nfmt.Println(\"again\")", "again\n")
	}
	eventually(t, "descriptors are closed again", func() bool { return len(openFiles(t)) <= before })
	file := filepath.Join(t.TempDir(), "out.txt")
	c.prints("%capture "+file+"\n%%\nfmt.Println(\"kept \u20ac\")", "kept \u20ac\n")
	if text, err := os.ReadFile(file); err != nil || string(text) != "kept \u20ac\n" {
		t.Errorf("captured %q: %v", text, err)
	}
	// A program that starts itself again keeps its child's output.
	c.prints("%%\nif len(os.Args) > 1 {\nfmt.Print(\"child\")\nreturn\n}\nout, err := exec.Command(os.Args[0], \"x\").Output()\n"+
		"fmt.Println(strings.Contains(string(out), \"child\"), err)", "true <nil>\n")
}

func openFiles(t *testing.T) []os.DirEntry {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return entries
}
