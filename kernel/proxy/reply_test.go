package proxy

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Each way to fail, with what the reply must say.
func TestRepliesTellTheTruth(t *testing.T) {
	c := start(t)
	c.prints("func f(x int) int {\n\tif x > 1 {\n\t\tpanic(\"boom\")\n\t}\n\treturn x\n}", "")
	for _, k := range []struct{ name, code, ename, evalue, trace string }{
		{"panic in an earlier cell's function", "%%\nfmt.Println(f(1))\nf(2)", "panic", "boom", "cell [1] line 3: panic(\"boom\")"},
		{"the panic's caller", "%%\nf(\n2)", "panic", "boom", "cell [3] line 2: f("},
		{"runtime error", "%%\nvar a []int\nfmt.Println(a[5])", "panic", "runtime error: index out of range [5] with length 0", "cell [4] line 3: fmt.Println(a[5])"},
		{"deadlock", "%%\nvar m sync.Mutex\nm.Lock()\nm.Lock()", "fatal error", "all goroutines are asleep - deadlock!", "cell [5] line 4: m.Lock()"},
		{"exit status", "%%\nos.Exit(3)", "ExitError", "the program ended: exit status 3", "cell [6]"},
		{"killed", "%%\nsyscall.Kill(os.Getpid(), syscall.SIGKILL)", "Killed", "the program ended: killed by SIGKILL", "cell [7]"},
		{"unused variable", "%%\nx := 1", "CompileError", "cell [8] line 2: declared and not used: x", "write _ = x"},
		{"two errors", "%%\nf(\"a\")\nnope()", "CompileError", `cell [9] line 2: cannot use "a" (untyped string constant) as int value in argument to f (and 1 more)`, "cell [9] line 3: undefined: nope"},
		{"in a declaration", "type T struct{}\n\nfunc (t *T) M() int { return t.x }", "CompileError", "cell [10] line 3: t.x undefined (type *T has no field or method x)", "                               ^"},
		{"syntax", "func g( {", "CompileError", "cell [11] line 1: expected ')', found '{'", "        ^"},
		{"an end that comes too early", "%%\nif true {", "CompileError", "cell [12] line 2: expected '}', found 'EOF'", "if true {"},
		{"shell line", "!echo hello; exit 3\n%%\nfmt.Println(1)", "CommandError", "exit status 3", "cell [13] line 1"},
		{"script", "%%bash\nexit 4", "CommandError", "exit status 4", "cell [14] line 1"},
		{"a program that is not there", "%%script no-such-program", "CommandError", "exit status 127", "cell [15] line 1"},
		{"unknown command", "x := 1\n%nope", "CellError", "there is no command %nope; %help lists those there are", "cell [16] line 2"},
		{"variable's type", "var (\n\ta = 1\n\tb int = \"s\"\n)", "CompileError", `cell [17] line 3: cannot use "s" (untyped string constant) as int value in variable declaration`, "^"},
		{"syntax, below a shell line", "!true\n%env A 1\npackages := 1", "CompileError", "cell [18] line 3: expected declaration, found packages", "    packages := 1"},
		{"no line %%", "for i := range 3 { fmt.Println(i) }", "CompileError", "cell [19] line 1: expected declaration, found 'for'", "statements stand below a line of their own that says %%;"},
		{"a variable of another cell", "%%\nfmt.Println(q)", "CompileError", "cell [20] line 2: undefined: q", `attn.Get("q")`},
		{"an import as in Python", "import numpy as np", "CompileError", "cell [21] line 1: import path must be a string", `import "math"`},
		{"a string as in Python", "%%\nfmt.Println('hello')", "CompileError", "cell [22] line 2: illegal rune literal", "double quotes"},
		{"print", "%%\nprint(struct{ a int }{1})", "CompileError", "cell [23] line 2: illegal types for operand: print", "fmt.Println"},
	} {
		r := c.run(k.code)
		if r.Status != "error" || r.Name != k.ename || r.Value != k.evalue || !strings.Contains(r.trace(), k.trace) {
			t.Errorf("%s: %s %s: %s, want %s: %s, and %q in\n%s", k.name, r.Status, r.Name, r.Value, k.ename, k.evalue, k.trace, r.trace())
		}
		if strings.Contains(r.trace(), "\x1b") || strings.Contains(r.trace(), "gonb_") {
			t.Errorf("%s: escapes or gonb's paths in the traceback\n%s", k.name, r.trace())
		}
		if errs := r.stream("stderr"); strings.Contains(errs, "goroutine") || strings.Contains(errs, "exit status") || strings.Contains(errs, "main.go") {
			t.Errorf("%s: stderr repeats it: %q", k.name, errs)
		}
		if !hasError(r) {
			t.Errorf("%s: no error message was published", k.name)
		}
	}
	c.prints("%%\nfmt.Println(f(1))", "1\n")
	// What looks like gonb's word on how a command ended, but is the command's own.
	if r := c.run("!echo exit status 7 >&2; true"); r.Status != "ok" || r.stream("stderr") != "exit status 7\n" {
		t.Errorf("%s, stderr %q", r.Status, r.stream("stderr"))
	}
	if r := c.run("!echo exit status 7 >&2; sleep 0.1; exit 4"); r.Value != "exit status 4" || r.stream("stderr") != "exit status 7\n" {
		t.Errorf("%s, stderr %q", r.Value, r.stream("stderr"))
	}
}

func hasError(r result) bool {
	for _, m := range r.iopub {
		if m.Header.Type == "error" {
			return true
		}
	}
	return false
}

// What a shell line does later lines see, in order.
func TestCommandsKeepTheirOrder(t *testing.T) {
	c := start(t)
	c.prints("%%\nfmt.Println(0)", "0\n") // by now all of the kernel has started, and read the environment
	t.Setenv("TMPDIR", t.TempDir())
	c.prints("!echo one\n%env WORD=two\n!echo $WORD; echo tmp:$TMPDIR; cat\n%%\nfmt.Println(os.Getenv(\"WORD\"), \"three\")",
		"one\nSet: WORD=\"two\"\ntwo\ntmp:\ntwo three\n")
	c.prints("%%bash\necho script $WORD", "script two\n")
	c.prints("!echo a \\\n  b", "a b\n")
	c.prints("%%\npackages := 7\nfmt.Println(packages)", "7\n")
}

func TestStopOnError(t *testing.T) {
	c := start(t)
	ids := []string{c.execute("%%\npanic(1)"), c.execute("%%\nfmt.Println(1)"), c.execute("%%\nfmt.Println(2)")}
	var got []string
	for _, id := range ids {
		r := c.result(id, 30*time.Second)
		got = append(got, r.Status)
		if r.stream("stdout") != "" {
			t.Errorf("an aborted cell printed %q", r.stream("stdout"))
		}
	}
	if fmt.Sprint(got) != "[error aborted aborted]" {
		t.Errorf("got %v", got)
	}
	no := false
	first := c.send(c.shell, "execute_request", map[string]any{"code": "%%\npanic(1)", "stop_on_error": no})
	second := c.execute("%%\nfmt.Println(3)")
	if a, b := c.result(first, 30*time.Second), c.result(second, 30*time.Second); a.Status != "error" || b.Status != "ok" {
		t.Errorf("without stop_on_error: %s, then %s, want error, then ok", a.Status, b.Status)
	}
}

func TestAnswersAtOnceWhileACellRuns(t *testing.T) {
	c := start(t)
	cell := c.execute("%%\nfmt.Println(\"up\")\ntime.Sleep(5 * time.Minute)")
	c.printed(cell, "up\n")
	for kind, content := range map[string]map[string]any{
		"kernel_info_request": {}, "comm_info_request": {}, "is_complete_request": {"code": "func f() {"},
		"history_request": {"hist_access_type": "tail", "n": 5},
	} {
		began := time.Now()
		r := c.result(c.send(c.shell, kind, content), patience)
		if took := time.Since(began); r.Status != "ok" && r.Status != "incomplete" || took > 10*time.Second {
			t.Errorf("%s: %s after %v", kind, r.Status, took)
		} else {
			t.Logf("%s: answered after %v", kind, took.Round(time.Millisecond))
		}
	}
	// The newest status must say that the cell still runs.
	if !c.until(patience, func() bool {
		m := c.iopubs[len(c.iopubs)-1]
		return parentID(m) == cell && strings.Contains(string(m.Content), "busy")
	}) {
		t.Error("the running cell's state was not said again")
	}
	c.send(c.control, "interrupt_request", map[string]any{})
	if r := c.result(cell, patience); r.Name != "Interrupted" {
		t.Errorf("%s %s", r.Status, r.Name)
	}
	h := c.result(c.send(c.shell, "history_request", map[string]any{"hist_access_type": "tail", "n": 1}), patience)
	var history struct{ History [][]any }
	if err := json.Unmarshal(h.reply.Content, &history); err != nil || len(history.History) != 1 || !strings.Contains(fmt.Sprint(history.History[0][2]), "Sleep") {
		t.Errorf("history: %v %s", err, h.reply.Content)
	}
}

// printed waits until a cell has printed something.
func (c *client) printed(id, text string) {
	c.t.Helper()
	if !c.until(30*time.Second, func() bool {
		var r result
		for _, m := range c.iopubs {
			if parentID(m) == id {
				r.iopub = append(r.iopub, m)
			}
		}
		return strings.Contains(r.stream("stdout"), text)
	}) {
		c.t.Fatalf("the cell does not print %q", text)
	}
}

func TestInterrupt(t *testing.T) {
	c := start(t)
	// The goal is 1 s. What takes longer than this has not heard the interrupt, but was killed.
	const soon = interruptKill - time.Second
	for _, k := range []struct {
		name, code, up string
		limit          time.Duration
		after          string // printed after the interrupt
	}{
		{"cell", "%%\nfmt.Println(\"up\")\ntime.Sleep(time.Minute)", "up\n", soon, ""},
		{"a cell that spins", "%%\nfmt.Println(\"up\")\nfor {\n}", "up\n", soon, ""},
		{"shell line", "!echo up; sleep 60; echo on\n!echo next\n%%\nfmt.Println(\"go\")", "up\n", soon, ""},
		{"a shell line that becomes another program", "!(trap : INT; echo up; sleep 60; exec sleep 60); echo on", "up\n", soon, ""},
		{"script", "%%bash\necho up\nsleep 60\necho on", "up\n", soon, ""},
		{"a cell that cleans up", "%%\nq := make(chan os.Signal, 1)\nsignal.Notify(q, os.Interrupt)\nfmt.Println(\"up\")\n<-q\nfmt.Println(\"bye\")", "up\n", soon, "bye\n"},
		{"a cell that prints without end", "%%\nfmt.Println(\"up\")\nfor {\nfmt.Println(\"more\")\n}", "up\n", soon, "more\n"},
		{"a cell that ignores it", "%%\nsignal.Ignore(os.Interrupt)\nfmt.Println(\"up\")\ntime.Sleep(time.Minute)", "up\n", patience, ""},
	} {
		id := c.execute(k.code)
		c.printed(id, k.up)
		began := time.Now()
		c.send(c.control, "interrupt_request", map[string]any{})
		r := c.result(id, patience)
		took := time.Since(began)
		t.Logf("%s: %v after the interrupt", k.name, took.Round(time.Millisecond))
		if took > k.limit || r.Status != "error" || r.Name != "Interrupted" {
			t.Errorf("%s: %s %s after %v, limit %v", k.name, r.Status, r.Name, took, k.limit)
		}
		if out := r.stream("stdout"); out != k.up+k.after && k.after != "more\n" {
			t.Errorf("%s: printed %q", k.name, out)
		}
	}
	// A build: it has no output to wait for, and must not reach the program.
	id := c.execute("import \"net/http\"\n%%\nfmt.Println(http.StatusOK)")
	time.Sleep(60 * time.Millisecond)
	began := time.Now()
	c.send(c.control, "interrupt_request", map[string]any{})
	if r := c.result(id, patience); r.Name != "Interrupted" || r.stream("stdout") != "" || time.Since(began) > soon {
		t.Errorf("build: %s %s after %v, printed %q", r.Status, r.Name, time.Since(began), r.stream("stdout"))
	}
	c.prints("%%\nfmt.Println(\"next\")", "next\n")
}

// A build that is interrupted leaves its files to nobody.
func TestInterruptedBuildsLeaveNoFiles(t *testing.T) {
	c := start(t)
	slow := slowLink(t)
	c.prints("%goflags -toolexec="+slow, "%goflags=[\"-toolexec="+slow+"\"]\n")
	temp := strings.TrimSpace(c.run("!dirname $GONB_TMP_DIR").stream("stdout"))
	builds := func() []string {
		found, err := filepath.Glob(filepath.Join(temp, "go-build*"))
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	for range 3 {
		before := builds()
		id := c.execute("%%\nfmt.Println(1)")
		eventually(t, "the build has begun", func() bool {
			return slices.ContainsFunc(builds(), func(dir string) bool { return !slices.Contains(before, dir) })
		})
		c.send(c.control, "interrupt_request", map[string]any{})
		if r := c.result(id, patience); r.Name != "Interrupted" {
			t.Errorf("%s %s", r.Status, r.Name)
		}
	}
	eventually(t, "its files are gone", func() bool {
		c.prints("!true", "")
		return len(builds()) == 0
	})
}

func TestShutdownLeavesNothing(t *testing.T) {
	c := start(t)
	id := c.execute("%%\nsignal.Ignore(os.Interrupt, syscall.SIGTERM)\nb := exec.Command(\"setsid\", \"sleep\", \"300\")\nb.Start()\n" +
		"fmt.Println(b.Process.Pid, os.Getenv(\"ATTNB_RUNTIME\"))\ntime.Sleep(time.Minute)")
	c.printed(id, "\n")
	var pid int
	var dir string
	c.mu.Lock()
	for _, m := range c.iopubs {
		if s, ok := streamOf(m); ok && parentID(m) == id {
			fmt.Sscan(s.Text, &pid, &dir)
		}
	}
	c.mu.Unlock()
	if pid == 0 || syscall.Kill(pid, 0) != nil {
		t.Fatalf("no background process: %d", pid)
	}
	shut := c.send(c.control, "shutdown_request", map[string]any{"restart": true})
	if !c.until(patience, func() bool { return c.answer(shut) != nil }) {
		t.Error("no shutdown reply on the control socket")
	}
	select {
	case err := <-c.ended:
		if err != nil {
			t.Error(err)
		}
		c.ended <- nil
	case <-time.After(patience):
		t.Fatal("the kernel still runs")
	}
	left(t, dir, pid)
}
