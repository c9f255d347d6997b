package proxy

import (
	"strings"
	"testing"
	"time"
)

// An interrupted cell says at which of its lines main was, and by which calls of earlier cells' functions it came there.
func TestInterruptNamesTheLine(t *testing.T) {
	c := start(t)
	c.prints("func wait(d time.Duration) {\n\ttime.Sleep(d)\n}\n\nfunc spin(n int) {\n\tfor {\n\t\ttime.Now()\n\t}\n}", "")
	for _, k := range []struct {
		name, code string
		trace      []string // in this order
	}{
		{"sleep", "%%\nfmt.Println(\"up\")\n\ntime.Sleep(time.Minute)",
			[]string{"cell [2] line 4: interrupted", "    time.Sleep(time.Minute)"}},
		{"an earlier cell's function", "%%\nfmt.Println(\"up\")\nwait(\ntime.Minute)",
			[]string{"cell [1] line 2: interrupted", "    time.Sleep(d)", "cell [3] line 3: called it", "    wait("}},
		{"a loop of an earlier cell", "%%\nfmt.Println(\"up\")\nspin(1)",
			[]string{"cell [1] line ", "cell [4] line 3: called it", "    spin(1)"}},
		{"a system call", "import \"syscall\"\n%%\nvar p [2]int\nsyscall.Pipe(p[:])\nfmt.Println(\"up\")\nsyscall.Read(p[0], make([]byte, 1))",
			[]string{"cell [5] line 6: interrupted", "syscall.Read("}},
		{"a child", "import \"os/exec\"\n%%\nfmt.Println(\"up\")\nexec.Command(\"sleep\", \"60\").Run()",
			[]string{"cell [6] line 4: interrupted", "exec.Command("}},
		{"half a line on stderr", "%%\nfmt.Println(\"up\")\nfmt.Fprint(os.Stderr, \"50%\")\nselect {\ncase <-time.After(time.Minute):\n}",
			[]string{"cell [7] line 5: interrupted"}},
		{"ten thousand goroutines", "import \"sync\"\n%%\nvar w sync.WaitGroup\nfor range 10000 {\nw.Go(func() { time.Sleep(time.Minute) })\n}\nfmt.Println(\"up\")\nw.Wait()",
			[]string{"cell [8] line 8: interrupted", "    w.Wait()"}},
	} {
		id := c.execute(k.code)
		c.printed(id, "up\n")
		time.Sleep(100 * time.Millisecond)
		began := time.Now()
		c.send(c.control, "interrupt_request", map[string]any{})
		r := c.result(id, patience)
		took := time.Since(began)
		t.Logf("%s: %v", k.name, took.Round(time.Millisecond))
		if r.Name != "Interrupted" || took > time.Second {
			t.Errorf("%s: %s %s after %v", k.name, r.Status, r.Name, took)
		}
		rest := r.trace()
		for _, want := range k.trace {
			at := strings.Index(rest, want)
			if at < 0 {
				t.Errorf("%s: no %q in order in\n%s", k.name, want, r.trace())
				break
			}
			rest = rest[at+len(want):]
		}
		if errs := r.stream("stderr"); errs != "" && errs != "50%" || strings.Contains(r.trace(), "goroutine") {
			t.Errorf("%s: stderr %q, traceback\n%s", k.name, errs, r.trace())
		}
	}
	c.prints("%%\nfmt.Println(\"next\")", "next\n")
}

// However the stacks are cut into pieces, none of them reaches the user, and all else does.
func TestStacksInPieces(t *testing.T) {
	const before = "50% SIGQUIT: no\nSIG"
	const report = stacksBegin + "PC=1 m=0 sigcode=0\n\ngoroutine 7 [running]:\nmain.f()\n\tx.go:1\n\ngoroutine 1 gp=0x1 [sleep]:\nmain.main()\n\tx.go:2\n\ngoroutine 8 [x]:\n"
	for size := 1; size < len(before+report); size++ {
		var s stacks
		var other strings.Builder
		enough := 0
		for rest := before + report; rest != ""; {
			piece := rest[:min(size, len(rest))]
			rest = rest[len(piece):]
			text, done := s.take(piece)
			other.WriteString(text)
			if done {
				enough++
			}
		}
		if got := other.String() + s.rest(); got != before || enough != 1 {
			t.Fatalf("pieces of %d: %q, enough %d times", size, got, enough)
		}
	}
	var s stacks
	text, _ := s.take("a SIGQ")
	if got := text + s.rest(); got != "a SIGQ" {
		t.Errorf("what never begins: %q", got)
	}
}
