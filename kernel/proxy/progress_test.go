package proxy

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/attnb/attnb/kernel/wire"
)

// fromPage sends a cell as a notebook page does.
func (c *client) fromPage(code string) (id string) {
	m := c.codec.New("execute_request", nil, map[string]any{"code": code, "allow_stdin": true})
	m.Metadata = json.RawMessage(`{"cellId": "7"}`)
	if err := c.shell.Send(c.codec.Frames(m), true); err != nil {
		c.t.Fatal(err)
	}
	return m.Header.MsgID
}

// page is what a page shows of a cell's output, in the end: it updates displays in place, and clears. bars are the bars that
// stood there on the way.
func (r result) page(t *testing.T) (shown, bars []string) {
	t.Helper()
	ids := map[string]int{}
	wait := false
	for _, m := range r.iopub {
		var d struct {
			Text      string
			Wait      bool
			Data      map[string]any
			Transient map[string]string
		}
		if err := json.Unmarshal(m.Content, &d); err != nil && m.Header.Type != "error" {
			t.Fatal(err)
		}
		text := d.Text
		switch m.Header.Type {
		case "clear_output":
			if wait = d.Wait; !wait {
				shown = nil
			}
			continue
		case "display_data", "update_display_data":
			if text = ""; len(d.Data) > 0 {
				text = fmt.Sprint(d.Data["text/plain"])
				if html, ok := d.Data["text/html"].(string); ok && strings.Contains(html, "<progress") {
					bars = append(bars, html)
				}
			}
		case "stream":
		default:
			continue
		}
		if m.Header.Type == "update_display_data" {
			shown[ids[d.Transient["display_id"]]] = text
			continue
		}
		if wait {
			shown, wait = nil, false
		}
		ids[d.Transient["display_id"]] = len(shown)
		shown = append(shown, text)
	}
	return shown, bars
}

// slowLink is a program for -toolexec with which linking takes two seconds more.
func slowLink(t *testing.T) string {
	t.Helper()
	slow := filepath.Join(t.TempDir(), "slow")
	if err := os.WriteFile(slow, []byte("#!/bin/sh\ncase \"$1 $2\" in *link\\ -o) sleep 2;; esac\nexec \"$@\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return slow
}

func TestBarWhileACellIsBuilt(t *testing.T) {
	c := start(t)
	slow := slowLink(t)
	c.prints("%goflags -toolexec="+slow, "%goflags=[\"-toolexec="+slow+"\"]\n")
	r := c.result(c.fromPage("%%\nfmt.Println(1)"), 60*time.Second)
	shown, bars := r.page(t)
	if len(bars) < 2 || !strings.Contains(bars[0], "building the cell, 1 s") || strings.Join(shown, "|") != "1\n" {
		t.Errorf("%s, bars %q, in the end %q", r.Status, bars, shown)
	}
	// Nor does it stay where nothing follows, and a program has none.
	r = c.result(c.fromPage("%%\n_ = 2"), 60*time.Second)
	if shown, bars = r.page(t); len(bars) < 2 || len(shown) != 0 {
		t.Errorf("%s, bars %q, in the end %q", r.Status, bars, shown)
	}
	r = c.run("%%\nfmt.Println(3)")
	if shown, bars = r.page(t); len(bars) != 0 || strings.Join(shown, "|") != "3\n" {
		t.Errorf("%s, bars %q, in the end %q", r.Status, bars, shown)
	}
}

func TestBarWhileTheDeviceWorks(t *testing.T) {
	c := startWith(t, "resident")
	conn, check := longCheck(t, strings.TrimSpace(c.run("!echo $ATTNB_SOCKET").stream("stdout")))
	defer conn.Close()
	id := c.fromPage("%%\nfmt.Println(\"up\")\ntime.Sleep(time.Minute)")
	c.printed(id, "up\n")
	go func() { _, _ = conn.Do(check) }()
	bar := func() bool {
		for _, m := range c.iopubs {
			if parentID(m) == id && strings.Contains(string(m.Content), "Check, ") {
				return true
			}
		}
		return false
	}
	if !c.until(30*time.Second, bar) {
		t.Error("no bar")
	}
	if r := c.result(c.send(c.control, "interrupt_request", map[string]any{}), patience); r.Status != "ok" {
		t.Errorf("interrupt: %s", r.Status)
	}
	r := c.result(id, 30*time.Second)
	shown, bars := r.page(t)
	if len(bars) == 0 || strings.Join(shown, "|") != "up\n|" || r.Name != "Interrupted" {
		t.Errorf("%s, bars %q, in the end %q", r.Name, bars, shown)
	}
	if text := c.run("%device").result(); !strings.Contains(text, "runs Check, for ") {
		t.Errorf("%%device: %s", text)
	}
}

// longCheck prepares a check that takes long.
func longCheck(t *testing.T, socket string) (*wire.Conn, wire.Request) {
	t.Helper()
	conn, err := wire.Dial(socket)
	if err != nil {
		t.Fatal(err)
	}
	const heads, seq, dim = 8, 400, 64
	values := make([]float32, heads*seq*dim)
	for i := range values {
		values[i] = float32(i%17)/17 - 0.5
	}
	a, err := conn.Upload(wire.Request{Kind: wire.KindUpload, Shape: []int{heads, seq, dim}, Axes: []string{"heads", "seq", "dim"}}, values)
	x := a
	for range 12 {
		if err == nil {
			x, err = conn.Do(wire.Request{Kind: wire.KindRun, Op: wire.OpPrefill, IDs: []int{x.Tensors[0].ID, a.Tensors[0].ID, a.Tensors[0].ID}})
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return conn, wire.Request{Kind: wire.KindCheck, IDs: []int{x.Tensors[0].ID}}
}
