package proxy

import (
	"encoding/base64"
	"encoding/json"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/attnb/attnb/kernel/proxy/jupyter"
	"github.com/attnb/attnb/kernel/wire"
)

const (
	holdLimit = 64 << 10 // bytes of a crash report that are kept off stderr
	holdTime  = time.Second
	// placedTime is how long a line is held back that may be where a cell stopped by its own words.
	placedTime = 200 * time.Millisecond
)

// sink takes what gonb publishes for one segment, acts on the markers in it, and publishes the rest for the cell.
type sink struct {
	e       *execution
	scan    *wire.Scanner
	program atomic.Pointer[program] // whose streams come to us; nil: through gonb

	mu sync.Mutex // for all that follows: timers end what is held back

	started bool
	exited  bool
	exit    string // status, or "signal NAME"
	failed  bool
	message string // of a cell that failed by its own words
	note    string // gonb's line on how a command ended, or the like by the command itself

	crash   string // what may be the report of a crash, held back: it belongs into the traceback
	holding bool
	told    bool   // the report took too long, and went to stderr
	newline bool   // stderr is at the start of a line
	stacks  stacks // of an interrupted program
	placed  string // a line "main.go:7: text", held back: it may be where the cell stops by its own words
}

func newSink(e *execution) *sink {
	return &sink{e: e, scan: wire.NewScanner(e.k.nonce), newline: true}
}

// publication is called with each message, in order.
func (s *sink) publication(m *jupyter.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch m.Header.Type {
	case "stream":
		t, ok := streamOf(m)
		switch {
		case !ok:
		case t.Name == "stdout":
			s.pieces(s.scan.Feed([]byte(t.Text)))
		case isExitNote(t.Text) && (!s.started || s.exited || s.program.Load() != nil):
			s.text("stderr", s.note) // one before was the command's own text
			s.note = t.Text
		default:
			s.stderr(t.Text)
		}
	case "display_data", "update_display_data", "execute_result", "clear_output", "comm_open", "comm_msg", "comm_close":
		s.e.publish(m.Header.Type, m.Content)
	}
	// What else gonb says (status, input, errors) is said by us.
}

// finish publishes what was held back. A crash report stays for the traceback.
func (s *sink) finish() {
	if p := s.program.Load(); p != nil {
		p.wait()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pieces(s.scan.Flush())
	s.text("stderr", s.stacks.rest())
	if !s.failed || !strings.HasSuffix(s.placed, ": "+s.message+"\n") {
		s.tellPlaced()
	}
	if s.holding && !s.crashed() {
		s.tell()
	}
	if s.exited && s.exit == "0" {
		s.text("stderr", s.note) // gonb has no word for success
	}
}

// crashed reports whether the program ended the way in which Go programs crash.
func (s *sink) crashed() bool {
	return s.exited && (s.exit == "2" || strings.HasPrefix(s.exit, "signal "))
}

func (s *sink) pieces(pieces []wire.Piece) {
	for _, p := range pieces {
		if p.Marker.Kind == "" {
			s.text("stdout", string(p.Text))
		} else {
			s.mark(p.Marker)
		}
	}
}

// hear is mark for what comes beside the streams.
func (s *sink) hear(m wire.Marker) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mark(m)
}

func (s *sink) mark(m wire.Marker) {
	switch m.Kind {
	case wire.MarkStart:
		s.started = true
	case wire.MarkExit:
		s.exited, s.exit = true, m.Arg
	case wire.MarkFail:
		if text, ok := wire.Unhex(m.Arg); ok {
			s.failed, s.message = true, text
		}
	case wire.MarkDisplay:
		s.display(m.Arg)
	case "":
	default:
		s.e.k.log.Warn("unknown marker", "kind", m.Kind)
	}
}

func (s *sink) text(name, text string) {
	if text != "" {
		s.e.publish("stream", stream{name, text})
	}
}

// display fetches a display from the device process and publishes it.
func (s *sink) display(id string) {
	v, err := s.e.k.device.display(id)
	if err != nil {
		s.text("stderr", "attnb: a display is lost: "+err.Error()+"\n")
		return
	}
	data := map[string]any{}
	for _, p := range v.Parts {
		switch {
		case strings.HasPrefix(p.MIME, "text/"), p.MIME == "image/svg+xml", p.MIME == "application/javascript":
			data[p.MIME] = string(p.Data)
		case strings.HasSuffix(p.MIME, "json"):
			data[p.MIME] = json.RawMessage(p.Data)
		default:
			data[p.MIME] = base64.StdEncoding.EncodeToString(p.Data)
		}
	}
	var controls map[string]any
	if v.Exploration != nil {
		view, html, err := s.widgetView(v)
		if err != nil {
			s.text("stderr", "attnb: "+err.Error()+"\n")
		}
		if view != nil {
			controls, data["text/html"] = view, html
		}
	}
	if v.Map != nil {
		if err := s.zoom(v); err != nil {
			s.text("stderr", "attnb: "+err.Error()+"\n")
		}
	}
	metadata := json.RawMessage("{}")
	if len(v.Metadata) > 0 && json.Valid(v.Metadata) {
		metadata = v.Metadata
	}
	transient := map[string]any{}
	kind := "display_data"
	if v.UpdateID != "" {
		transient["display_id"] = v.UpdateID
		if v.Replaces {
			kind = "update_display_data"
		}
	}
	s.e.publish(kind, map[string]any{"data": data, "metadata": metadata, "transient": transient})
	if controls != nil {
		s.e.publish("display_data", map[string]any{"data": controls, "metadata": map[string]any{}, "transient": map[string]any{}})
	}
}

var (
	exitNote   = regexp.MustCompile(`^(?:\^C\n)?((?:exit status \d+|signal: [a-z ]+)(?: \(core dumped\))?)\n$`)
	crashStart = regexp.MustCompile(`(?m)^(?:panic: |fatal error: |goroutine \d+ .*\[|SIG[A-Z]+: |runtime: )`)
)

// isExitNote recognises what gonb itself writes to a cell's stderr when a program has failed.
func isExitNote(text string) bool { return len(text) < 64 && exitNote.MatchString(text) }

func (s *sink) stderr(text string) {
	if s.e.isInterrupted() {
		var enough bool
		if text, enough = s.stacks.take(text); enough {
			if p := s.program.Load(); p != nil {
				p.enough()
			}
		}
		if text == "" {
			return
		}
	}
	s.tellPlaced()
	switch {
	case s.told:
		s.text("stderr", s.e.cellLines(text))
	case s.holding:
		s.hold(text)
	default:
		at := crashStart.FindStringIndex(text)
		if at == nil || at[0] == 0 && !s.newline {
			s.placedLast(text)
			break
		}
		s.text("stderr", s.e.cellLines(text[:at[0]]))
		s.holding = true
		s.hold(text[at[0]:])
		time.AfterFunc(holdTime, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.holding && !s.exited {
				s.tell()
			}
		})
	}
	s.newline = strings.HasSuffix(text, "\n")
}

// placedLast publishes text, but holds its last line back for a moment if that begins with a place.
func (s *sink) placedLast(text string) {
	at := strings.LastIndexByte(strings.TrimSuffix(text, "\n"), '\n') + 1
	if m := mainLine.FindStringIndex(text[at:]); m == nil || m[0] > 0 || at == 0 && !s.newline || !strings.HasPrefix(text[at+m[1]:], ": ") {
		s.text("stderr", s.e.cellLines(text))
		return
	}
	s.text("stderr", s.e.cellLines(text[:at]))
	s.placed = text[at:]
	time.AfterFunc(placedTime, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.failed {
			s.tellPlaced()
		}
	})
}

func (s *sink) tellPlaced() {
	s.text("stderr", s.e.cellLines(s.placed))
	s.placed = ""
}

func (s *sink) hold(text string) {
	s.crash += text
	if len(s.crash) > holdLimit {
		s.tell()
	}
}

// tell gives up holding back.
func (s *sink) tell() {
	s.text("stderr", s.e.cellLines(s.crash))
	s.holding, s.told = false, true
}
