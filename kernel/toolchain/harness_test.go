package toolchain

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/attnb/attnb/kernel/spec"
	"github.com/attnb/attnb/kernel/wire"
)

// These tests run the real executable under both of its names, and the real go.

const nonce = "00112233445566778899aabbccddeeff"

var (
	testHome spec.Home
	goCache  string
)

func TestMain(m *testing.M) {
	os.Exit(func() int {
		root, err := os.MkdirTemp("", "attnb-toolchain-*")
		if err != nil {
			panic(err)
		}
		defer func() { _ = os.RemoveAll(root) }()
		testHome = spec.Home{Root: root}
		if err := makeHome(testHome); err != nil {
			panic(err)
		}
		return m.Run()
	}())
}

// makeHome makes an installation whose module has one package, attn, and no dependencies.
func makeHome(h spec.Home) error {
	cache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		return err
	}
	goCache = strings.TrimSpace(string(cache))
	build := exec.Command("go", "build", "-o", h.Cell(), spec.Module+"/kernel/cmd/attnb-cell")
	if out, err := build.CombinedOutput(); err != nil {
		return errors.New(string(out))
	}
	for name, text := range map[string]string{
		"src/go.mod": "module " + spec.Module + "\n\ngo 1.26.0\n",
		"src/go.sum": "",
		"src/kernel/attn/attn.go": "package attn\n\nvar onceHashes string\n\n" +
			"func Hashes() string { return onceHashes }\n\nfunc Once(name string, make func() int) int { return make() }\n",
		"mod/empty": "",
	} {
		path := filepath.Join(h.Root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(h.PathDir(), 0o755); err != nil {
		return err
	}
	return errors.Join(os.Symlink("../attnb-cell", filepath.Join(h.PathDir(), "go")),
		os.Symlink("../attnb-cell", filepath.Join(h.PathDir(), "goimports")))
}

type cell struct {
	t   *testing.T
	dir string
	env []string // beyond the test's own
}

func newCell(t *testing.T) *cell {
	dir := filepath.Join(t.TempDir(), "gonb_0123abcd")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	c := &cell{t: t, dir: dir, env: []string{
		"GOFLAGS=", "GOWORK=off", "GOPROXY=off", "GOCACHE=" + goCache, "XDG_CACHE_HOME=" + filepath.Join(testHome.Root, "cache"),
	}}
	if out, err := c.command("go", "mod", "init", "gonb_0123abcd").CombinedOutput(); err != nil {
		t.Fatalf("go mod init: %v\n%s", err, out)
	}
	return c
}

func (c *cell) program() string { return filepath.Join(c.dir, filepath.Base(c.dir)) }

func (c *cell) command(name string, args ...string) *exec.Cmd {
	path := testHome.PathDir() + string(filepath.ListSeparator) + os.Getenv("PATH")
	if name == "go" {
		name = filepath.Join(testHome.PathDir(), "go")
	}
	cmd := exec.Command(name, args...)
	cmd.Dir = c.dir
	cmd.Env = append(os.Environ(), append(c.env, "PATH="+path)...)
	return cmd
}

func (c *cell) write(name, text string) {
	c.t.Helper()
	if err := os.WriteFile(filepath.Join(c.dir, name), []byte(text), 0o644); err != nil {
		c.t.Fatal(err)
	}
}

// build does what gonb does with a cell.
func (c *cell) build(code string) {
	c.t.Helper()
	c.write("main.go", code)
	for _, args := range [][]string{{"get"}, {"build", "-o", c.program()}} {
		if out, err := c.command("go", args...).CombinedOutput(); err != nil {
			c.t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// run runs the built program through the launcher: its text, its markers, its exit status.
func (c *cell) run(args ...string) (text string, marks []string, code int) {
	c.t.Helper()
	cmd := c.command(c.program(), args...)
	cmd.Env = append(cmd.Env, wire.EnvNonce+"="+nonce)
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		c.t.Fatal(err)
	}
	text, marks = scan(out)
	return text, marks, cmd.ProcessState.ExitCode()
}

func scan(out []byte) (text string, marks []string) {
	scanner := wire.NewScanner(nonce)
	for _, piece := range append(scanner.Feed(out), scanner.Flush()...) {
		text += string(piece.Text)
		if piece.Marker.Kind != "" {
			marks = append(marks, piece.Marker.Kind+" "+piece.Marker.Arg)
		}
	}
	return text, marks
}

// start starts the program and returns once it has printed its pid.
func (c *cell) start(what string) (*exec.Cmd, *bytes.Buffer, string) {
	c.t.Helper()
	cmd := c.command(c.program(), what)
	cmd.Env = append(cmd.Env, wire.EnvNonce+"="+nonce)
	out, pid := begin(c.t, cmd)
	return cmd, out, pid
}

func begin(t *testing.T, cmd *exec.Cmd) (*bytes.Buffer, string) {
	t.Helper()
	first := make(chan string, 1)
	out := &bytes.Buffer{}
	cmd.Stdout = writer(func(p []byte) {
		out.Write(p)
		if text, _ := scan(out.Bytes()); strings.HasSuffix(text, "\n") {
			select {
			case first <- strings.TrimSpace(text):
			default:
			}
		}
	})
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	select {
	case pid := <-first:
		return out, pid
	case <-time.After(20 * time.Second):
		t.Fatal("the program printed nothing")
		return nil, ""
	}
}

type writer func([]byte)

func (w writer) Write(p []byte) (int, error) {
	w(p)
	return len(p), nil
}

func expectGone(t *testing.T, pid string) {
	t.Helper()
	number, err := strconv.Atoi(pid)
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if syscall.Kill(number, 0) != nil {
			return
		}
		// An orphan may stay a zombie where nobody reaps.
		if stat, err := os.ReadFile("/proc/" + pid + "/stat"); err == nil && strings.Contains(string(stat), ") Z ") {
			return
		}
	}
	t.Errorf("process %s is still there", pid)
}
