package runtimedir

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestLife(t *testing.T) {
	parent := t.TempDir()
	os.Chmod(parent, 0o700)
	t.Setenv("XDG_RUNTIME_DIR", parent)
	if len(parent) >= 60 {
		t.Skipf("the temporary directory's path is too long for a socket: %s", parent)
	}
	d, err := Create()
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(d.Path)
	if err != nil || info.Mode().Perm() != 0o700 || filepath.Dir(d.Path) != parent {
		t.Fatalf("%s: %v %v", d.Path, info, err)
	}

	// One that is held stays; one that nobody holds goes, with its processes; a foreign one stays.
	abandoned := filepath.Join(parent, "attnb-gone")
	foreign := filepath.Join(parent, "other-gone")
	for _, dir := range []string{abandoned, foreign} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, lockName), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	fresh := filepath.Join(parent, "attnb-fresh") // being created: it has no lock yet
	if err := os.Mkdir(fresh, 0o700); err != nil {
		t.Fatal(err)
	}
	orphan := marked(t, abandoned)
	mine := marked(t, d.Path)

	e, err := Create()
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{abandoned: false, foreign: true, fresh: true, d.Path: true, e.Path: true} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s: %v, want it there: %v", path, err, want)
		}
	}
	ended(t, orphan)
	if s := State(mine.Process.Pid); s == 0 || s == 'Z' {
		t.Error("a process of a kernel that lives was ended")
	}
	if err := d.Remove(); err != nil {
		t.Error(err)
	}
	ended(t, mine)
	if _, err := os.Stat(d.Path); !os.IsNotExist(err) {
		t.Errorf("%s is still there", d.Path)
	}
	if err := e.Remove(); err != nil {
		t.Error(err)
	}
}

// marked starts a process in a session of its own that ignores what it can, and whose own environment is all that links
// it to the directory.
func marked(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sh", "-c", "trap '' INT TERM HUP; while :; do sleep 1; done")
	cmd.Env = append(os.Environ(), EnvRuntime+"="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	for range 500 {
		if pids := Marked(dir); len(pids) > 0 {
			return cmd
		}
		time.Sleep(2 * time.Millisecond)
	}
	t.Fatal("the process is not found by its environment")
	return nil
}

func ended(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case err := <-done:
		if err == nil || !strings.Contains(err.Error(), "killed") {
			t.Errorf("ended by %v, want killed", err)
		}
	case <-time.After(5 * time.Second):
		t.Error("a process still runs")
	}
}

func TestPlace(t *testing.T) {
	open := t.TempDir()
	os.Chmod(open, 0o755)
	for _, dir := range []string{"", "/no/such/directory", open, strings.Repeat("/long", 20)} {
		t.Setenv("XDG_RUNTIME_DIR", dir)
		if parent, prefix := place(); parent != "/tmp" || !strings.HasPrefix(prefix, "attnb-") {
			t.Errorf("%q: %s %s", dir, parent, prefix)
		}
	}
}
