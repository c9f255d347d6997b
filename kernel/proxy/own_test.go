package proxy

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
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
