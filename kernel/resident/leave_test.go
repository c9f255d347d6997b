package resident

import (
	"net"
	"testing"
	"time"

	"github.com/attnb/attnb/kernel/wire"
	"github.com/attnb/attnb/reference"
)

// A detective that takes long tells how far it is, and ends with the client that asked.
func TestQuestionEndsWithItsClient(t *testing.T) {
	p := onHost(t)
	b := p.dial()
	defer b.Close()
	a, err := net.Dial("unix", p.socket)
	if err != nil {
		t.Fatal(err)
	}
	send := func(r wire.Request) {
		t.Helper()
		if err := wire.WriteFrame(a, r.Encode()); err != nil {
			t.Fatal(err)
		}
	}
	// A cache that holds none of its rows: each slot is compared with every row. Nobody reads the answers.
	rows, cache := b.random(1, hsd, 2, 3000, 16), b.random(2, hsd, 2, 3000, 16)
	send(wire.Request{Kind: wire.KindHello, Number: wire.Version, Name: token})
	send(wire.Request{Kind: wire.KindAsk, Question: &wire.Question{Topic: "cache", Roles: []string{"rows", "cache"}}, Params: wire.Params{Rotary: 16},
		IDs: []int{rows.ID, cache.ID}})
	until := func(what string, is func(s wire.Status) bool) {
		t.Helper()
		for begin := time.Now(); ; time.Sleep(5 * time.Millisecond) {
			s, err := b.Status()
			if err != nil {
				t.Fatal(err)
			}
			if is(s) {
				return
			}
			if time.Since(begin) > 20*time.Second {
				t.Fatalf("%s: %+v", what, s)
			}
		}
	}
	until("a part is done", func(s wire.Status) bool { return s.Running == "CheckCache" && s.Done > 0 && s.Done < 0.2 })
	left := time.Now()
	a.Close()
	until("it is over", func(s wire.Status) bool { return s.Running == "" })
	t.Logf("over %v after the client left", time.Since(left))
}

// What a question works out once it has the function's last result is its own work, too, and the status says so.
func TestStatusOfAFunctionsQuestion(t *testing.T) {
	p := onHost(t)
	c, b := p.dial(), p.dial()
	defer c.Close()
	defer b.Close()
	f := shippedFunctions()[1] // a probe
	f.settings = []wire.Fact{{Name: "geometry", Numbers: []float64{1, 1, 700, 700, 128}}}
	calls := make(chan bool, 100)
	over := make(chan wire.Answer)
	go func() {
		over <- c.askAbout(f, f.settings, func(q, k, v reference.Heads) reference.Heads {
			calls <- true
			return plainly(bottomRight)(q, k, v)
		})
	}()
	for range 6 { // of seven
		<-calls
	}
	running, partly := false, false
	for {
		s, err := b.Status()
		if err != nil {
			t.Fatal(err)
		}
		running = running || s.Running == "Probe"
		partly = partly || s.Running == "Probe" && s.Done > 0 && s.Done < 1
		select {
		case a := <-over:
			if !running || !partly || !silent(a) {
				t.Errorf("seen: %v, with a part of it done: %v; %s", running, partly, a.Text)
			}
			return
		case <-time.After(time.Millisecond):
		}
	}
}
