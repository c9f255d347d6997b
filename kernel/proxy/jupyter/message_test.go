package jupyter

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestRoundTrip(t *testing.T) {
	c := NewCodec("key")
	parent := c.New("execute_request", nil, map[string]any{"code": "a < b"})
	m := c.New("stream", parent, map[string]any{"text": "é <&>"})
	m.IDs = [][]byte{[]byte("client"), []byte("hop")}
	m.Buffers = [][]byte{{0, 1}, {}}
	got, err := c.Parse(c.Frames(m))
	if err != nil {
		t.Fatal(err)
	}
	if got.Header != m.Header || string(got.Parent) != string(parent.Raw) || string(got.Content) != `{"text":"é <&>"}` ||
		len(got.IDs) != 2 || string(got.IDs[1]) != "hop" || len(got.Buffers) != 2 || string(got.Buffers[0]) != "\x00\x01" {
		t.Errorf("got %+v", got)
	}
	if got.Header.Version != ProtocolVersion || got.Header.Session == "" || got.Header.Date == "" {
		t.Errorf("header %+v", got.Header)
	}
}

func TestParseRefuses(t *testing.T) {
	c := NewCodec("key")
	good := c.Frames(c.New("x", nil, map[string]any{}))
	change := func(i int, b string) [][]byte {
		f := append([][]byte(nil), good...)
		f[i] = []byte(b)
		return f
	}
	unsigned := NewCodec("")
	plain := unsigned.Frames(unsigned.New("x", nil, map[string]any{}))
	for name, k := range map[string]struct {
		codec  *Codec
		frames [][]byte
		want   error
	}{
		"nothing":            {c, nil, ErrGarbage},
		"no delimiter":       {c, good[1:], ErrGarbage},
		"too short":          {c, good[:5], ErrGarbage},
		"wrong signature":    {c, change(1, "00"), ErrSignature},
		"no signature":       {c, change(1, ""), ErrSignature},
		"changed content":    {c, change(5, `{"a":1}`), ErrSignature},
		"another key":        {NewCodec("other"), good, ErrSignature},
		"unsigned":           {c, plain, ErrSignature},
		"no JSON":            {unsigned, [][]byte{plain[0], nil, []byte("{"), plain[3], plain[4], plain[5]}, ErrGarbage},
		"header is a list":   {unsigned, [][]byte{plain[0], nil, []byte("[]"), plain[3], plain[4], plain[5]}, ErrGarbage},
		"header has no type": {unsigned, [][]byte{plain[0], nil, []byte("{}"), plain[3], plain[4], plain[5]}, ErrGarbage},
	} {
		if m, err := k.codec.Parse(k.frames); !errors.Is(err, k.want) || m != nil {
			t.Errorf("%s: %v, want %v", name, err, k.want)
		}
	}
	if _, err := c.Parse(good); err != nil {
		t.Error(err)
	}
	if _, err := unsigned.Parse(good); err != nil {
		t.Errorf("a codec without a key checks no signature: %v", err)
	}
}

func TestReadConnection(t *testing.T) {
	for text, ok := range map[string]bool{
		`{"transport":"tcp","ip":"127.0.0.1","shell_port":7,"key":"k","signature_scheme":"hmac-sha256"}`: true,
		`{"transport":"ipc","ip":"/tmp/k"}`:                 true,
		`{"transport":"udp"}`:                               false,
		`{"transport":"tcp","signature_scheme":"hmac-md5"}`: false,
		`{`: false,
	} {
		file := filepath.Join(t.TempDir(), "c.json")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := ReadConnection(file)
		if (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
		if c.Shell == 7 {
			if network, address := c.Endpoint(c.Shell); network != "tcp" || address != "127.0.0.1:7" {
				t.Errorf("%s %s", network, address)
			}
		}
	}
	if _, err := ReadConnection("/no/such/file"); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// FuzzParse takes apart what a client may send, frames separated by line ends. What is accepted is a message that can be sent on, and none
// is accepted that was not signed.
func FuzzParse(f *testing.F) {
	plain, signed := NewCodec(""), NewCodec("key")
	m := plain.New("execute_request", nil, map[string]any{"code": "a < b"})
	m.IDs, m.Buffers = [][]byte{[]byte("client")}, [][]byte{{0, 1}}
	f.Add(bytes.Join(plain.Frames(m), []byte("\n")))
	f.Add([]byte("<IDS|MSG>\n\n{\"msg_type\":\"x\"}\n\n{}\n[]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		frames := bytes.Split(text, []byte("\n"))
		if _, err := signed.Parse(frames); err == nil {
			t.Fatal("accepted without the key")
		}
		m, err := plain.Parse(frames)
		if err != nil {
			return
		}
		again, err := plain.Parse(plain.Frames(m))
		if err != nil || again.Header != m.Header || len(again.IDs) != len(m.IDs) || len(again.Buffers) != len(m.Buffers) || m.Header.Type == "" {
			t.Fatalf("%+v, %v, want %+v", again, err, m)
		}
	})
}
