package far

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/hashicorp/yamux"

	"github.com/attnb/attnb/kernel/wire"
)

// Hello is the first line that a relay sends.
type Hello struct {
	Version  string        `json:"attnb"`
	Protocol int           `json:"protocol"`
	Token    string        `json:"token"` // of the kernel: whose tensors are meant
	Grace    time.Duration `json:"grace"`
	Device   string        `json:"device,omitempty"` // ATTNB_DEVICE of a device process that is started; empty: what it is there
	Memory   string        `json:"memory,omitempty"` // ATTNB_MEMORY, likewise
	Keep     []uint64      `json:"keep,omitempty"`   // the relay's connections: all others have ended
}

// Welcome is the line that answers it.
type Welcome struct {
	Version  string `json:"attnb"`
	Protocol int    `json:"protocol"`
	Instance string `json:"instance,omitempty"` // of the device process: another one has none of the tensors
	Error    string `json:"error,omitempty"`    // why there is none
}

// marker begins a Welcome's line: what a shell's profile prints before is not one.
const marker = "attnb-far "

// maxLine bounds a line, in bytes; maxNoise what may come before a Welcome's.
const (
	maxLine  = 1 << 20
	maxNoise = 64 << 10
)

// ours is what both lines say of this program.
func (h Hello) same(w Welcome) bool { return h.Version == w.Version && h.Protocol == w.Protocol }

// mismatch says what to do about versions that differ.
func mismatch(host string, h Hello, w Welcome) error {
	return fmt.Errorf("%s has attnb %.40s (protocol %d), this machine %s (protocol %d): install the same on both, by ./install.sh in clones of one version, or from one bundle",
		host, w.Version, w.Protocol, h.Version, h.Protocol)
}

// readLine reads a line of at most max bytes, without its end.
func readLine(r *bufio.Reader, max int) (string, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if line = append(line, part...); len(line) > max {
			return "", errors.New("a line is too long")
		}
		if err == nil {
			return strings.TrimRight(string(line), "\r\n"), nil
		}
		if err != bufio.ErrBufferFull {
			return string(line), err
		}
	}
}

// readHello reads a relay's first line.
func readHello(r *bufio.Reader) (Hello, error) {
	var h Hello
	line, err := readLine(r, maxLine)
	if err != nil {
		return h, err
	}
	return h, json.Unmarshal([]byte(line), &h)
}

// readWelcome reads up to the line that answers. noise is what came before, which a shell's profile has printed.
func readWelcome(r *bufio.Reader) (w Welcome, noise string, err error) {
	for {
		line, err := readLine(r, maxLine)
		if text, ok := strings.CutPrefix(line, marker); ok && err == nil {
			return w, noise, json.Unmarshal([]byte(text), &w)
		}
		if noise += line + "\n"; err != nil {
			return w, noise, err
		}
		if len(noise) > maxNoise {
			return w, noise, errors.New("it does not answer as attnb does")
		}
	}
}

func writeHello(w io.Writer, h Hello) error { return writeLine(w, "", h) }

func writeWelcome(w io.Writer, answer Welcome) error { return writeLine(w, marker, answer) }

func writeLine(w io.Writer, start string, message any) error {
	text, err := json.Marshal(message)
	if err == nil {
		_, err = w.Write(append(append([]byte(start), text...), '\n'))
	}
	return err
}

// pipe is what yamux speaks over: a reader that has read ahead, and what it reads from.
type pipe struct {
	io.Reader
	io.WriteCloser
}

// settings are those of both ends. patience is how long a link may be silent that should answer.
func settings(patience time.Duration) *yamux.Config {
	c := yamux.DefaultConfig()
	c.KeepAliveInterval = min(5*time.Second, patience/2)
	c.ConnectionWriteTimeout = patience
	c.StreamOpenTimeout = 2 * patience
	// What may be under way: more is faster over a long way, less lets others through a narrow one.
	c.MaxStreamWindowSize = 1 << 20
	c.LogOutput = io.Discard
	return c
}

// errAnswer is an answer that is none.
var errAnswer = errors.New("an answer that is malformed")

// success reads an answer that carries nothing.
func success(r io.Reader) error {
	body, err := wire.ReadFrame(r)
	if err != nil {
		return err
	}
	a, err := wire.DecodeAnswer(body)
	switch {
	case err != nil || a.DataLen != 0:
		return errAnswer
	case a.Code != wire.OK:
		return &wire.Error{Code: a.Code, Message: a.Message}
	}
	return nil
}
