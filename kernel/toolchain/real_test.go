package toolchain

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/attnb/attnb/kernel/spec"
)

const program = `package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/attnb/attnb/kernel/attn"
)

var q = attn.Once("q \"1\"", func() int { return 1 })

func main() {
	switch os.Args[1] {
	case "args":
		fmt.Printf("%q %q %q\n", os.Args[1:], attn.Hashes(), os.Getenv("TMPDIR"))
		fmt.Print(os.Args[0])
	case "exit":
		os.Exit(3)
	case "panic":
		panic("as asked")
	case "kill":
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	case "child":
		child := exec.Command("sleep", "100")
		child.Stdout = os.Stdout
		fmt.Println(child.Start())
		fmt.Println(child.Process.Pid)
	case "interruptible":
		c := make(chan os.Signal, 1)
		signal.Notify(c, os.Interrupt)
		fmt.Println(os.Getpid())
		<-c
		fmt.Println("interrupted")
		os.Exit(5)
	case "stubborn":
		signal.Ignore(os.Interrupt)
		fmt.Println(os.Getpid())
		time.Sleep(time.Minute)
	}
}
`

func TestBuildAndLaunch(t *testing.T) {
	c := newCell(t)
	c.build(program)
	c.env = append(c.env, "TMPDIR=/gonb", EnvUserTMPDIR+"=/mine")

	text, marks, code := c.run("args", "b c")
	hash := onceHashes(c.dir)["q \"1\""]
	if want := `["args" "b c"] "q \"1\"=` + hash + `" "/mine"` + "\n" + c.program(); text != want || hash == "" {
		t.Errorf("args: %q, want %q", text, want)
	}
	if want := []string{"start ", "exit 0"}; !slices.Equal(marks, want) || code != 0 {
		t.Errorf("args: markers %q, code %d", marks, code)
	}
	for _, ending := range []struct {
		how  string
		mark string
		code int
	}{{"exit", "exit 3", 3}, {"panic", "exit 2", 2}, {"kill", "exit signal SIGKILL", 128 + 9}} {
		_, marks, code := c.run(ending.how)
		if want := []string{"start ", ending.mark}; !slices.Equal(marks, want) || code != ending.code {
			t.Errorf("%s: markers %q, code %d", ending.how, marks, code)
		}
	}

	out, err := c.command(c.program(), "exit").Output()
	if len(out) > 0 || err == nil {
		t.Errorf("without a nonce: %q, %v", out, err)
	}
}

func TestLeftoverChildrenEndWithTheProgram(t *testing.T) {
	c := newCell(t)
	c.build(program)
	done := time.AfterFunc(30*time.Second, func() { panic("stdout is still held open") })
	defer done.Stop()
	text, marks, _ := c.run("child") // returns when stdout closes
	lines := strings.Fields(text)
	if len(lines) != 2 || lines[0] != "<nil>" || !slices.Equal(marks, []string{"start ", "exit 0"}) {
		t.Fatalf("child: %q %q", text, marks)
	}
	expectGone(t, lines[1])
}

func TestInterrupt(t *testing.T) {
	c := newCell(t)
	c.build(program)
	cmd, out, _ := c.start("interruptible")
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	text, marks := scan(out.Bytes())
	if !strings.HasSuffix(text, "interrupted\n") || !slices.Equal(marks, []string{"start ", "exit 5"}) {
		t.Errorf("interrupted: %q %q", text, marks)
	}
}

func TestStubbornProgramIsKilledBeforeItsLauncher(t *testing.T) {
	if testing.Short() {
		t.Skip("waits 4.5 s")
	}
	c := newCell(t)
	c.build(program)
	cmd, out, pid := c.start("stubborn")
	begin := time.Now()
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if took := time.Since(begin); took < grace || took > 5*time.Second {
		t.Errorf("killed after %v", took)
	}
	if _, marks := scan(out.Bytes()); !slices.Equal(marks, []string{"start ", "exit signal SIGKILL"}) {
		t.Errorf("markers %q", marks)
	}
	expectGone(t, pid)
}

func TestKilledLauncherTakesTheProgramAlong(t *testing.T) {
	c := newCell(t)
	c.build(program)
	cmd, _, pid := c.start("stubborn")
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	expectGone(t, pid)
}

func TestDeadParentTakesTheProgramAlong(t *testing.T) {
	c := newCell(t)
	c.build(program)
	parent := c.command("sh", "-c", `"$0" stubborn & wait`, c.program())
	_, pid := begin(t, parent)
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	expectGone(t, pid)
}

func TestGet(t *testing.T) {
	c := newCell(t)
	for _, cell := range []struct {
		imports string
		ok      bool
	}{
		{`"fmt"; "net/http"; "unsafe"; "` + attnPath + `"`, true},
		{`"example.org/none"`, false},                      // the real go is asked, and there is no network
		{`"` + spec.Module + `/kernel/none"`, false},       // not a package of the module that is there
		{`"` + spec.Module + `additional/package"`, false}, // not within the module, whatever its letters
	} {
		c.write("main.go", "package main\nimport ("+cell.imports+")\n")
		out, err := c.command("go", "get").CombinedOutput()
		if (err == nil) != cell.ok {
			t.Errorf("go get with %s: %v\n%s", cell.imports, err, out)
		}
		if cell.ok && len(out) > 0 {
			t.Errorf("go get with %s says %s", cell.imports, out)
		}
	}
}

func TestTestCell(t *testing.T) {
	c := newCell(t)
	c.write("main_test.go", "package main\n\nimport \"testing\"\n\nfunc TestX(t *testing.T) { t.Log(\"seen\") }\n")
	for _, args := range [][]string{{"get", "-t"}, {"test", "-c", "-o", c.program()}} {
		if out, err := c.command("go", args...).CombinedOutput(); err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	text, marks, code := c.run("-test.v")
	if !strings.Contains(text, "seen") || !strings.Contains(text, "PASS") || code != 0 || len(marks) != 2 {
		t.Errorf("code %d, markers %q\n%s", code, marks, text)
	}
}

func TestCompileErrorIsTheRealOne(t *testing.T) {
	c := newCell(t)
	c.write("main.go", "package main\n\nfunc main() { x := 1 }\n")
	out, err := c.command("go", "build", "-o", c.program()).CombinedOutput()
	if want := "# gonb_0123abcd\n./main.go:3:15: declared and not used: x\n"; err == nil || string(out) != want {
		t.Errorf("%v %q", err, out)
	}
}

func TestElsewhereItIsTheRealGo(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	dir := t.TempDir()
	c := &cell{t: t, dir: dir, env: []string{"GOFLAGS=", "GOWORK=off", "GOPROXY=some,direct"}}
	if out, err := c.command("go", "mod", "init", "plain").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil || strings.Contains(string(mod), spec.Module) {
		t.Errorf("go mod init elsewhere: %v\n%s", err, mod)
	}
	got, err := c.command("go", "env", "GOPROXY", "GOROOT").Output()
	cmd := exec.CommandContext(ctx, "go", "env", "GOPROXY", "GOROOT")
	cmd.Env = append(os.Environ(), c.env...)
	want, wantErr := cmd.Output()
	if err != nil || wantErr != nil || string(got) != string(want) {
		t.Errorf("go env: %s, want %s (%v, %v)", got, want, err, wantErr)
	}
}
