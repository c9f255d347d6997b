package proxy

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/attnb/attnb/kernel/proxy/jupyter"
	"github.com/attnb/attnb/kernel/proxy/runtimedir"
	"github.com/attnb/attnb/kernel/wire"
)

// patience is how long a test waits, on a loaded machine, for what must happen. It is bounded only to end.
const patience = 30 * time.Second

// eventually waits for a condition, and says how long that took.
func eventually(t *testing.T, what string, done func() bool) bool {
	t.Helper()
	began := time.Now()
	for !done() {
		if time.Since(began) > patience {
			t.Errorf("%s: not after %v", what, patience)
			return false
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Logf("%s: after %v", what, time.Since(began).Round(time.Millisecond))
	return true
}

// left fails the test when a directory, or a process marked with it, stays.
func left(t *testing.T, dir string, pids ...int) {
	t.Helper()
	if dir == "" {
		t.Fatal("no runtime directory")
	}
	eventually(t, "the runtime directory is gone", func() bool {
		_, err := os.Stat(dir)
		return os.IsNotExist(err)
	})
	// The device process itself ends after it has cleaned up.
	eventually(t, "its processes are gone", func() bool {
		for _, pid := range append(runtimedir.Marked(dir), pids...) {
			if s := runtimedir.State(pid); s != 0 && s != 'Z' {
				return false
			}
		}
		return true
	})
	for _, pid := range append(runtimedir.Marked(dir), pids...) {
		if s := runtimedir.State(pid); s != 0 && s != 'Z' {
			t.Errorf("process %d (%s) still runs", pid, runtimedir.Name(pid))
		}
	}
}

// The inputs that crash or hang gonb, and others that are only strange: each is answered, and the next cell runs.
func TestNothingKillsIt(t *testing.T) {
	c := startWith(t, "resident")
	c.prints("var kept = 42", "")
	socket := strings.TrimSpace(c.run("!echo $ATTNB_SOCKET").stream("stdout"))
	conn, err := wire.Dial(socket)
	if err != nil {
		t.Fatal(err)
	}
	a, err := conn.Upload(wire.Request{Kind: wire.KindUpload, Shape: []int{2, 2}, Axes: []string{"seq", "dim"}}, []float32{1, 2, 3, 0.1})
	if err == nil {
		_, err = conn.Do(wire.Request{Kind: wire.KindName, IDs: []int{a.Tensors[0].ID}, Name: "x"})
	}
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	unharmed := func(after string) {
		t.Helper()
		if r := c.run("!echo on"); r.stream("stdout") != "on\n" {
			t.Errorf("after %.40q the next cell: %s %s", after, r.Status, r.Value)
		}
		conn, err := wire.Dial(socket)
		if err != nil {
			t.Fatalf("after %.40q: %v", after, err)
		}
		defer conn.Close()
		a, err := conn.Do(wire.Request{Kind: wire.KindGet, Name: "x"})
		if err != nil {
			t.Fatalf("after %.40q: %v", after, err)
		}
		data, err := conn.Download(wire.Request{Kind: wire.KindDownload, IDs: []int{a.Tensors[0].ID}})
		if err != nil || !slices.Equal(data, []float32{1, 2, 3, 0.1}) {
			t.Errorf("after %.40q the tensor is %v: %v", after, data, err)
		}
	}
	gonb := c.gonbPID()
	for _, k := range []struct{ code, status, value string }{
		{"% ", "ok", ""}, {"!  ", "ok", ""}, {"%\\", "ok", ""}, {"%\\\n\\", "ok", ""}, {"!\\", "ok", ""}, {"%\t", "ok", ""},
		{"%%script", "error", "%%script takes the program to run, as in %%script python3"},
		{"%%script \"\"", "error", "exit status 127"},
		{"%%\n%%", "error", "a cell has one main function: line 1 already begins it"},
		{"%%\n%main", "error", "a cell has one main function: line 1 already begins it"},
		{"%exec f\n%exec g", "error", "a cell has one main function: line 1 already begins it"},
		{"%exec", "error", "%exec takes the name of the function to run, as in %exec train"},
		{"%exec\tf", "error", "%exec takes the name of the function to run, as in %exec train"},
		{"%executive x", "error", "there is no command %executive; %help lists those there are"},
		{"//line foo.go:1000\nfunc q() {}", "error", "//line directives have no meaning in a cell"},
		{"%%\n/*line x.go:9:9*/ fmt.Println()", "error", "/*line directives have no meaning in a cell"},
		{"%%\n\x00", "error", "line 2: illegal character NUL (and 2 more errors)"},
		{"!echo \x00", "error", ""},
		{"%%\n" + strings.Repeat("{", 200_000), "error", ""},
		{"%untrack", "error", ""}, {"%capture", "error", ""}, {"%env", "error", ""}, {"%cd /no/such", "error", ""},
		{"%cd \"\"", "error", "cd: the path is empty"}, {"%cd ~no-such-user/x", "error", `cd: there is no user "no-such-user"`},
		{"%capture \"\"", "error", "capture: the path is empty"}, {"%%writefile \"\"\nx", "error", "%%writefile: the path is empty"},
		{"%track \"\"", "error", "track: the path is empty"}, {"%capture a b", "error", ""}, {"%rm", "ok", ""},
		{"%%writefile", "error", ""}, {"%%bash x", "error", ""}, {"%test", "ok", ""}, {"%goflags \"", "ok", ""},
		{"//gonb:", "ok", ""}, {"package foo", "ok", ""}, {"", "ok", ""}, {" \n\t", "ok", ""},
		{"%%\r\nfmt.Println(\"crlf\")\r\n", "ok", ""}, {"%args \"\\", "ok", ""}, {"%with_inputs", "ok", ""},
	} {
		r := c.run(k.code)
		if r.Status != k.status || !strings.HasSuffix(r.Value, k.value) {
			t.Errorf("%.40q: %s %q, want %s %q", k.code, r.Status, r.Value, k.status, k.value)
		}
		unharmed(k.code)
	}
	if r := c.run("%%\nx := `" + strings.Repeat("a", 10<<20) + "`\nfmt.Println(len(x))"); r.stream("stdout") != "10485760\n" {
		t.Errorf("a 10 MB cell: %s %s %q", r.Status, r.Value, r.stream("stdout"))
	}
	unharmed("a 10 MB cell")
	c.prints("%%\nfmt.Println(kept)", "42\n")
	// The kernel's own commands see it.
	r := c.run("%tensors")
	if !strings.Contains(r.result(), "x      seq dim   2 2     16 B") {
		t.Errorf("%%tensors: %s\n%s", r.Status, r.result())
	}
	if r := c.run("%free nope"); r.Status != "error" || !strings.Contains(r.Value, "nope") {
		t.Errorf("%%free of an unknown name: %s %s", r.Status, r.Value)
	}
	if r := c.run("%free x\n%tensors"); r.result() != "no named tensors" {
		t.Errorf("%%free, then: %s\n%s", r.Value, r.result())
	}
	if r := c.run("%device"); !strings.Contains(r.result(), "no tensors") {
		t.Errorf("%%device: %s", r.result())
	}
	if now := c.gonbPID(); now != gonb {
		t.Errorf("gonb was replaced: %d, now %d", gonb, now)
	}
}

func (c *client) gonbPID() int {
	c.t.Helper()
	var pid int
	r := c.run("!echo $PPID")
	if _, err := fmt.Sscan(r.stream("stdout"), &pid); err != nil {
		c.t.Fatal(err)
	}
	return pid
}

// result is the text of a cell's execute_result.
func (r result) result() string {
	for _, m := range r.iopub {
		var d struct{ Data map[string]any }
		if m.Header.Type == "execute_result" && json.Unmarshal(m.Content, &d) == nil {
			return fmt.Sprint(d.Data["text/plain"])
		}
	}
	return ""
}

// A client answers what a shell line asks, and a captured file holds the output alone.
func TestInputAndCapture(t *testing.T) {
	c := start(t)
	id := c.send(c.shell, "execute_request", map[string]any{"code": "%with_inputs\n!read word; echo got $word", "allow_stdin": true})
	frames, err := c.stdin.Receive()
	if err != nil {
		t.Fatal(err)
	}
	m, err := c.codec.Parse(frames)
	if err != nil || m.Header.Type != "input_request" || parentID(m) != id {
		t.Fatalf("%v %+v", err, m)
	}
	c.send(c.stdin, "input_reply", map[string]any{"value": "a word"})
	if r := c.result(id, patience); r.stream("stdout") != "got a word\n" {
		t.Errorf("%s %q", r.Status, r.stream("stdout"))
	}
	file := filepath.Join(t.TempDir(), "out.txt")
	c.prints("%capture "+file+"\n%%\nfmt.Println(\"kept\")", "kept\n")
	if text, err := os.ReadFile(file); err != nil || string(text) != "kept\n" {
		t.Errorf("captured %q: %v", text, err)
	}
}

// A comm with a target that nobody knows is closed; gonb's own gets through to it.
func TestComms(t *testing.T) {
	c := start(t)
	c.send(c.shell, "comm_open", map[string]any{"comm_id": "c1", "target_name": "stranger", "data": map[string]any{}})
	if !c.until(patience, func() bool {
		return slices.ContainsFunc(c.iopubs, func(m *jupyter.Message) bool { return m.Header.Type == "comm_close" })
	}) {
		t.Error("an unknown target was not refused")
	}
	c.prints("!echo up", "up\n") // gonb is there
	id := c.send(c.shell, "comm_open", map[string]any{"comm_id": "c2", "target_name": gonbTarget, "data": map[string]any{}, "kernel_id": "0a1b2c3d-0001"})
	if !c.until(patience, func() bool {
		return slices.ContainsFunc(c.iopubs, func(m *jupyter.Message) bool {
			return m.Header.Type == "comm_msg" && parentID(m) == id && strings.Contains(string(m.Content), "open_ack")
		})
	}) {
		t.Error("gonb did not acknowledge its comm")
	}
	for _, content := range []any{map[string]any{}, []int{}, map[string]any{"comm_id": 7}, map[string]any{"comm_id": "c2", "data": nil}, map[string]any{"comm_id": "c2", "target_name": gonbTarget, "kernel_id": 7}} {
		for _, kind := range []string{"comm_open", "comm_msg", "comm_close"} {
			c.send(c.shell, kind, content)
		}
	}
	c.prints("!echo alive", "alive\n")
}

// Help and completion requests that would crash gonb or never end.
func TestLookupsEnd(t *testing.T) {
	c := start(t)
	for _, code := range []string{"", "% ", "!  ", "%exec", "%exec\tf\n", "%%\n%%\nfmt.", "   ", "\n\n ", "a, b := f()", "x)", "}", "(", "//line a.go:1\nf", "%%script"} {
		for _, kind := range []string{"inspect_request", "complete_request"} {
			for _, at := range []int{-5, 0, 1, len(code), len(code) + 100} {
				r := c.result(c.send(c.shell, kind, map[string]any{"code": code, "cursor_pos": at}), patience)
				if r.Status != "ok" {
					t.Errorf("%s of %q at %d: %s %s", kind, code, at, r.Status, r.Value)
				}
			}
		}
	}
	c.prints("%%\nfmt.Println(1)", "1\n")
}

// Messages that are none are dropped; those that lack fields get what is usual.
func TestMalformedMessages(t *testing.T) {
	c := start(t)
	good := c.codec.Frames(c.codec.New("execute_request", nil, map[string]any{"code": "!echo forged"}))
	bad := append([][]byte(nil), good...)
	bad[1] = []byte(strings.Repeat("0", 64))
	for _, frames := range [][][]byte{
		{}, {{}}, {[]byte("garbage")}, {[]byte("<IDS|MSG>")}, good[:4], bad,
		{[]byte("<IDS|MSG>"), good[1], []byte("{"), good[3], good[4], good[5]},
	} {
		if len(frames) > 0 {
			c.shell.Send(frames, true)
			c.control.Send(frames, true)
			c.stdin.Send(frames, true)
		}
	}
	// Correctly signed, with contents that are none.
	for _, content := range []string{`[]`, `{"code": 7}`, `{"code": null}`, `{}`, `{"code": "!echo x", "silent": "yes"}`} {
		m := c.codec.New("execute_request", nil, nil)
		m.Content = []byte(content)
		c.shell.Send(c.codec.Frames(m), true)
		c.result(m.Header.MsgID, patience)
	}
	m := c.codec.New("execute_request", nil, nil)
	m.Content = []byte("{\"code\": \"!echo \xff\"}")
	c.shell.Send(c.codec.Frames(m), true)
	if r := c.result(m.Header.MsgID, patience); r.Status != "error" || !strings.Contains(r.Value, "UTF-8") {
		t.Errorf("invalid UTF-8: %s %s", r.Status, r.Value)
	}
	if r := c.result(c.send(c.shell, "no_such_request", map[string]any{}), patience); r.Status != "error" {
		t.Errorf("an unknown request: %s", r.Status)
	}
	c.prints("!echo alive", "alive\n")
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.iopubs {
		if s, ok := streamOf(m); ok && strings.Contains(s.Text, "forged") {
			t.Error("a message with a wrong signature was executed")
		}
	}
}

func TestRevival(t *testing.T) {
	c := start(t)
	c.prints("import \"strings\"\n\ntype T struct{ n int }\n\nfunc (t T) Up() string { return strings.Repeat(\"u\", t.n) }\n\nconst (\n\tA = iota\n\tB\n)\n\nvar x, y = 3, 4", "")
	c.prints("func init_mark() { fmt.Println(\"init\") }", "init\n")
	c.prints("%env COLOUR=green\n%%\nfmt.Println(T{2}.Up())", "Set: COLOUR=\"green\"\ninit\nuu\n")
	c.prints("func gone() {}", "init\n")
	c.prints("%rm gone", ". removed func gone\n")
	pid := c.gonbPID()

	// While idle: it comes back by itself.
	began := time.Now()
	_ = syscall.Kill(pid, syscall.SIGKILL)
	c.prints("%%\nfmt.Println(T{3}.Up(), A, B, x+y, os.Getenv(\"COLOUR\"))", "init\nuuu 0 1 7 green\n")
	restarted(t, "idle, until the next cell had run", began)
	if r := c.run("func gone() int { return 1 }"); r.Status != "ok" {
		t.Errorf("a name that was removed: %s", r.Value)
	}

	// While a cell runs.
	id := c.execute("%%\nfmt.Println(\"up\")\ntime.Sleep(time.Minute)")
	c.printed(id, "up\n")
	began = time.Now()
	_ = syscall.Kill(c.childPID(t), syscall.SIGKILL)
	r := c.result(id, 30*time.Second)
	restarted(t, "while a cell ran, until its reply", began)
	if r.Name != "GonbError" || !strings.Contains(r.Value, "every named tensor is still there") || !strings.Contains(r.Value, "declared again: A, B, T, T.Up, gone, init_mark, x, y") {
		t.Errorf("%s: %s", r.Name, r.Value)
	}
	c.prints("%%\nfmt.Println(T{1}.Up())", "init\nu\n")
	// Errors still name the cells of before.
	if r := c.run("%%\nvar t T\nt.n = -1\nt.Up()"); !strings.Contains(r.trace(), "cell [1] line 5: func (t T) Up()") {
		t.Errorf("no line of the first cell in\n%s", r.trace())
	}
}

// restarted says how long gonb's restart took, replay included. It should be 2 s; a loaded machine gets more.
func restarted(t *testing.T, when string, began time.Time) {
	t.Helper()
	took := time.Since(began)
	t.Logf("gonb was killed %s: %v", when, took.Round(time.Millisecond))
	if took > 10*time.Second {
		t.Errorf("gonb was killed %s: %v", when, took)
	}
}

// childPID finds gonb without a cell.
func (c *client) childPID(t *testing.T) int {
	for _, pid := range runtimedir.Children(os.Getpid()) {
		if runtimedir.Name(pid) == "gonb" {
			return pid
		}
	}
	t.Fatal("no gonb")
	return 0
}

// A kernel that is killed cannot clean up: the device process does, by its lifeline.
func TestKilledKernelLeavesNothing(t *testing.T) {
	c := newClient(t)
	file := filepath.Join(t.TempDir(), "connection.json")
	text, err := json.Marshal(c.conn)
	if err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	kernel := exec.Command(os.Args[0], "kernel", file, home.root)
	if err := kernel.Start(); err != nil {
		t.Fatal(err)
	}
	defer kernel.Process.Kill()
	c.connect()
	id := c.execute("%%\nsignal.Ignore(os.Interrupt, syscall.SIGTERM)\nb := exec.Command(\"setsid\", \"sleep\", \"300\")\nb.Start()\n" +
		"fmt.Println(os.Getpid(), b.Process.Pid, os.Getenv(\"ATTNB_RUNTIME\"))\ntime.Sleep(time.Minute)")
	c.printed(id, "\n")
	var cell, background int
	var dir string
	c.mu.Lock()
	for _, m := range c.iopubs {
		if s, ok := streamOf(m); ok && parentID(m) == id {
			fmt.Sscan(s.Text, &cell, &background, &dir)
		}
	}
	c.mu.Unlock()
	if n := len(runtimedir.Marked(dir)); n < 4 {
		t.Fatalf("%d processes in %q, want gonb, the device process, a cell and its child at least", n, dir)
	}
	kernel.Process.Kill()
	kernel.Wait()
	left(t, dir, cell, background)
}
