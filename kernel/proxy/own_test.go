package proxy

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/attnb/attnb/kernel/far"
	"github.com/attnb/attnb/kernel/resident"
)

// A person gets help in the pager; a program, as nbconvert is, has none.
func TestHelpIsSeen(t *testing.T) {
	c := start(t)
	r := c.result(c.send(c.shell, "execute_request", map[string]any{"code": "%help", "allow_stdin": true}), 30*time.Second)
	var reply struct {
		Payload []struct {
			Source string
			Data   map[string]string
		}
	}
	if err := json.Unmarshal(r.reply.Content, &reply); err != nil || len(reply.Payload) != 1 || !strings.Contains(reply.Payload[0].Data["text/plain"], "%tensors") || r.result() != "" {
		t.Errorf("%v %s %q", err, r.reply.Content, r.result())
	}
	r = c.run("%help")
	if err := json.Unmarshal(r.reply.Content, &reply); err != nil || len(reply.Payload) != 0 || !strings.Contains(r.result(), "%tensors") {
		t.Errorf("to a program: %v %s %q", err, r.reply.Content, r.result())
	}
}

// A client hears when its subscription counts, and of what topic.
func TestSubscribersAreWelcome(t *testing.T) {
	c := start(t)
	sub := c.dial(4, "SUB", "")
	defer sub.Close()
	frames, err := sub.Receive()
	if err != nil {
		t.Fatal(err)
	}
	m, err := c.codec.Parse(frames)
	if err != nil || m.Header.Type != "iopub_welcome" || string(m.Content) != `{"subscription":""}` {
		t.Fatalf("%v %+v", err, m)
	}
	// Of a topic of its own it hears that alone.
	one := c.dial(4, "SUB", "")
	defer one.Close()
	if _, err = one.Receive(); err != nil {
		t.Fatal(err)
	}
	one.Send([][]byte{{0}}, true)
	one.Send([][]byte{[]byte("\x01kernel.error")}, true)
	for {
		if frames, err = one.Receive(); err != nil {
			t.Fatal(err)
		}
		if m, err = c.codec.Parse(frames); err == nil && m.Header.Type == "iopub_welcome" {
			break
		}
	}
	if string(m.Content) != `{"subscription":"kernel.error"}` || string(frames[0]) != "kernel.error" {
		t.Errorf("%q %s", frames[0], m.Content)
	}
	c.run("nope")
	if frames, err = one.Receive(); err == nil {
		m, err = c.codec.Parse(frames)
	}
	if err != nil || m.Header.Type != "error" {
		t.Errorf("%v %+v", err, m)
	}
}

// What the end of a device process means depends on where it was.
func TestEpitaph(t *testing.T) {
	killed := errors.New("signal: killed")
	for _, c := range []struct {
		status int
		away   string
		want   string
	}{
		{-1, "", "the device process ended (signal: killed): every tensor is lost. It starts anew"},
		{deviceFault, "", "the device failed: every tensor is lost. A fresh device process starts"},
		{-1, "ssh://gpu1", "the relay to ssh://gpu1 ended (signal: killed). It starts anew, and finds the tensors that have a name"},
		{deviceGone, "ssh://gpu1", "the device process at ssh://gpu1 is gone: every tensor is lost. A fresh one starts"},
	} {
		if got := epitaph(c.status, killed, c.away); got != c.want {
			t.Errorf("%d, %q: %s", c.status, c.away, got)
		}
	}
	if deviceFault != resident.ExitFault || deviceGone != far.ExitGone {
		t.Error("other exit statuses than those of the device process and the relay")
	}
}
