package proxy

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// shows is Go text that writes a display marker.
const shows = "show := func(id string) {\nfmt.Printf(\"\\x1b]attnb;%s;display;%s\\x1b\\\\\", os.Getenv(\"ATTNB_NONCE\"), id)\n}\n"

// trace writes what a cell put out as one text: printed lines, and displays in angle brackets.
func (r result) shown() string {
	var b strings.Builder
	for _, m := range r.iopub {
		if s, ok := streamOf(m); ok && s.Name == "stdout" {
			b.WriteString(s.Text)
		}
		if strings.HasSuffix(m.Header.Type, "display_data") {
			var d struct {
				Data      map[string]any
				Transient map[string]any
			}
			if err := json.Unmarshal(m.Content, &d); err != nil {
				return err.Error()
			}
			mark := ""
			if m.Header.Type != "display_data" {
				mark = "!"
			}
			if id := d.Transient["display_id"]; id != nil {
				mark += fmt.Sprint(id) + "="
			}
			fmt.Fprintf(&b, "<%s%v>", mark, d.Data["text/plain"])
		}
	}
	return b.String()
}

func TestDisplaysKeepTheirOrder(t *testing.T) {
	c := start(t)
	var want strings.Builder
	for i := range 200 {
		fmt.Fprintf(&want, "line %d\n<shown %d>", i, i)
	}
	for range 5 {
		r := c.run("%%\n" + shows + "for i := range 200 {\nfmt.Println(\"line\", i)\nshow(strconv.Itoa(i))\n}")
		if got := r.shown(); got != want.String() {
			t.Fatalf("got %.300q, want %.300q", got, want.String())
		}
	}
	// A later cell updates what an earlier one shows.
	if got := c.run("%%\n" + shows + "show(\"a/box\")").shown(); got != "<box=shown a>" {
		t.Errorf("got %q", got)
	}
	if got := c.run("%%\n" + shows + "show(\"again/box\")").shown(); got != "<!box=shown again>" {
		t.Errorf("got %q", got)
	}
	// A cell that stops by its own words.
	r := c.run("%%\nfmt.Println(\"before\")\nfmt.Printf(\"\\x1b]attnb;%s;fail;%x\\x1b\\\\\", os.Getenv(\"ATTNB_NONCE\"), \"Scores: q and k differ\")\nos.Exit(1)")
	if r.Status != "error" || r.Value != "Scores: q and k differ" || r.stream("stdout") != "before\n" || r.stream("stderr") != "" {
		t.Errorf("%s %s: %s, printed %q and %q", r.Status, r.Name, r.Value, r.stream("stdout"), r.stream("stderr"))
	}
	r = c.run("%%\nfmt.Printf(\"\\x1b]attnb;%s;fail;%x\\x1b\\\\\", os.Getenv(\"ATTNB_NONCE\"), \"no such tensor\")\n" +
		"_, file, line, _ := runtime.Caller(0)\nfmt.Fprintf(os.Stderr, \"first\\n%s:%d: no such tensor\\n\", file, line)\nos.Exit(1)")
	if r.trace() != "cell [9] line 3: no such tensor\n    _, file, line, _ := runtime.Caller(0)" || r.stream("stderr") != "first\n" {
		t.Errorf("%s and on stderr %q", r.trace(), r.stream("stderr"))
	}
	// A line with a place that is nobody's failure.
	r = c.run("%%\nlog.SetFlags(log.Llongfile)\nlog.Print(\"logged\")")
	if r.Status != "ok" || r.stream("stderr") != "cell [10] line 3: logged\n" {
		t.Errorf("%s, stderr %q", r.Status, r.stream("stderr"))
	}
	// A marker of somebody else is text.
	c.prints("%%\nfmt.Print(\"\\x1b]attnb;00;exit;3\\x1b\\\\\")", "\x1b]attnb;00;exit;3\x1b\\")
}

// 30 MB arrive whole, while the processes between stay small.
func TestStormOfOutput(t *testing.T) {
	c := start(t)
	const lines = 300_000
	gonb := c.gonbPID()
	id := c.execute(fmt.Sprintf("%%%%\nw := bufio.NewWriter(os.Stdout)\ndefer w.Flush()\nfor i := range %d {\nfmt.Fprintf(w, \"%%099d\\n\", i)\n}", lines))
	peak := 0
	for deadline := time.Now().Add(60 * time.Second); time.Now().Before(deadline); {
		peak = max(peak, residentMB(gonb))
		if c.until(20*time.Millisecond, func() bool { return c.idle(id) }) {
			break
		}
	}
	var want strings.Builder
	for i := range lines {
		fmt.Fprintf(&want, "%099d\n", i)
	}
	if got := c.result(id, patience).stream("stdout"); got != want.String() {
		t.Errorf("got %d bytes, want %d, or another text", len(got), want.Len())
	}
	if peak > 400 {
		t.Errorf("gonb grew to %d MB", peak)
	}
}

// A client that takes nothing stops the cell, not the kernel: memory stays, and an interrupt arrives.
func TestClientThatTakesNothing(t *testing.T) {
	c := start(t)
	gonb := c.gonbPID()
	deaf := c.dial(4, "SUB", "") // subscribed, and never read
	defer deaf.Close()
	id := c.execute("%%\nline := strings.Repeat(\"x\", 9999) + \"\\n\"\nfor {\nos.Stdout.WriteString(line)\n}")
	// Once the queues are full nothing moves, for as long as the deaf client is waited for (zmtp.StallLimit).
	for last, since := -1, time.Now(); time.Since(since) < 500*time.Millisecond; time.Sleep(20 * time.Millisecond) {
		if n := c.bytesOf(id); n != last {
			last, since = n, time.Now()
		}
	}
	before := residentMB(gonb) + residentMB(os.Getpid())
	time.Sleep(2 * time.Second)
	if mb := residentMB(gonb) + residentMB(os.Getpid()) - before; mb > 50 {
		t.Errorf("memory grew by %d MB in 2 s", mb)
	}
	began := time.Now()
	c.send(c.control, "interrupt_request", map[string]any{})
	// Later it would be the kill that follows an interrupt.
	for cellRuns(gonb) && time.Since(began) < interruptKill-time.Second {
		time.Sleep(10 * time.Millisecond)
	}
	if took := time.Since(began); cellRuns(gonb) {
		t.Errorf("the cell still runs %v after the interrupt", took)
	} else {
		t.Logf("the cell ended %v after the interrupt", took.Round(time.Millisecond))
	}
	deaf.Close()
	if r := c.result(id, 30*time.Second); r.Name != "Interrupted" {
		t.Errorf("%s %s", r.Status, r.Name)
	}
	c.prints("!echo next", "next\n")
}

// bytesOf counts what a cell has printed.
func (c *client) bytesOf(id string) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.iopubs {
		if parentID(m) == id {
			n += len(m.Content)
		}
	}
	return n
}

func cellRuns(gonb int) bool { return len(descendants(gonb)) > 0 }

func residentMB(pid int) int {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0
	}
	var size, pages int
	fmt.Sscan(string(b), &size, &pages)
	return pages * os.Getpagesize() >> 20
}
