package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/attnb/attnb/cudaops/devices"
	"github.com/attnb/attnb/kernel/proxy/runtimedir"
	"github.com/attnb/attnb/kernel/wire"
)

// TestMain is attnb itself when it is called with a command.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == slowSSH {
		os.Exit(throttledSSH(os.Args[2:]))
	}
	if os.Getenv("ATTNB_TEST_MAIN") != "" {
		os.Exit(run(os.Args[1:]))
	}
	os.Exit(m.Run())
}

func attnb(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), "ATTNB_TEST_MAIN=1", devices.Variable+"=host")
	return cmd
}

func TestExitStatus(t *testing.T) {
	for _, c := range []struct {
		args []string
		want int
	}{
		{nil, 2}, {[]string{"help"}, 0}, {[]string{"--help"}, 0}, {[]string{"version"}, 0}, {[]string{"nope"}, 2},
		{[]string{"kernel"}, 2}, {[]string{"kernel", "/no/such/file"}, 1}, {[]string{"device"}, 2}, {[]string{"device", "--nope"}, 2},
		{[]string{"device", "--socket", "/no/such/dir/s"}, 1}, {[]string{"device", "--socket", "s", "--self-test"}, 2},
		{[]string{"bundle", "--help"}, 0}, {[]string{"bundle", "extra"}, 2}, {[]string{"bundle"}, 1}, // no installation
	} {
		cmd := attnb(c.args...)
		out, _ := cmd.CombinedOutput()
		if got := cmd.ProcessState.ExitCode(); got != c.want || len(out) == 0 {
			t.Errorf("attnb %v: exit status %d, want %d, and wrote %q", c.args, got, c.want, out)
		}
	}
}

// What is said of a device, and how the process ends, on a device that is sound and on one that is not there.
func TestDeviceSelfTest(t *testing.T) {
	out, err := attnb("device", "--self-test").CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "self-test of backend host on ") || !strings.HasSuffix(string(out), "\npassed\n") {
		t.Errorf("%v: %s", err, out)
	}
	for _, op := range []string{"rope", "softmax", "prefill", "decode", "append", "add", "gather", "pitched copy", "real layers"} {
		if !strings.Contains(string(out), "\nok    "+op+" ") {
			t.Errorf("nothing about %s in:\n%s", op, out)
		}
	}
	cmd := attnb("device", "--self-test")
	cmd.Env = append(cmd.Env, devices.Variable+"=abacus")
	out, _ = cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != 1 || string(out) != "attnb device: ATTNB_DEVICE=abacus: want host, cuda, cuda:N or auto\n" {
		t.Errorf("%v: %s", cmd.ProcessState, out)
	}
}

func TestKernelID(t *testing.T) {
	for file, want := range map[string]string{
		"/run/kernel-0a1b-2c.json": "0a1b-2c", "kernel-x.json": "", "tmpabc.json": "", "/kernel-1/other.json": "", "kernel-.json": "",
	} {
		if got := kernelID(file); got != want {
			t.Errorf("%s: %q, want %q", file, got, want)
		}
	}
}

// device starts a device process with a lifeline, and a process of the same kernel.
func device(t *testing.T) (cmd *exec.Cmd, lifeline *os.File, dir string, other *exec.Cmd) {
	t.Helper()
	dir, err := os.MkdirTemp("", "attnb-d-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "device")
	cmd = attnb("device", "--socket", socket, "--runtime", dir)
	cmd.ExtraFiles = []*os.File{read}
	other = exec.Command("sleep", "300")
	other.Env = append(os.Environ(), runtimedir.EnvRuntime+"="+dir)
	for _, c := range []*exec.Cmd{cmd, other} {
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Process.Kill() })
	}
	read.Close()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		conn, err := wire.Dial(socket)
		if err == nil {
			conn.Close()
			return cmd, write, dir, other
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

func wait(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	timer := time.AfterFunc(5*time.Second, func() {
		t.Errorf("%v still runs", cmd.Args)
		cmd.Process.Kill()
	})
	cmd.Wait()
	timer.Stop()
}

func TestDeviceCleansUpAfterItsKernel(t *testing.T) {
	cmd, lifeline, dir, other := device(t)
	cmd.Process.Signal(syscall.SIGINT) // of a terminal: not for it
	lifeline.Close()
	wait(t, cmd)
	wait(t, other)
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the runtime directory is still there: %v", err)
	}
	if cmd.ProcessState.ExitCode() != 0 {
		t.Errorf("ended by %v", cmd.ProcessState)
	}
}

func TestDeviceLeavesTheRestToItsKernel(t *testing.T) {
	cmd, lifeline, dir, other := device(t)
	defer lifeline.Close()
	cmd.Process.Signal(syscall.SIGTERM)
	wait(t, cmd)
	if _, err := os.Stat(dir); err != nil {
		t.Error(err)
	}
	if s := runtimedir.State(other.Process.Pid); s == 0 || s == 'Z' {
		t.Error("a process of the kernel was ended")
	}
}

// The memory that a device process may take is a setting of its environment.
func TestMemory(t *testing.T) {
	cmd := attnb("device", "--socket", "/no/such/dir/s")
	cmd.Env = append(cmd.Env, devices.MemoryVariable+"=lots")
	out, _ := cmd.CombinedOutput()
	want := "attnb device: ATTNB_MEMORY=lots: want a number of bytes, or one with K, M, G or T, such as 8GiB\n"
	if cmd.ProcessState.ExitCode() != 1 || string(out) != want {
		t.Errorf("exit status %d, wrote %q, want %q", cmd.ProcessState.ExitCode(), out, want)
	}
	socket := filepath.Join(t.TempDir(), "s")
	if err := os.Chmod(filepath.Dir(socket), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd = attnb("device", "--socket", socket)
	cmd.Env = append(cmd.Env, devices.MemoryVariable+"=3MiB")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		c, err := wire.Dial(socket)
		if err != nil && time.Now().Before(deadline) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if s, err := c.Status(); err != nil || s.Total != 3<<20 {
			t.Errorf("status %+v, %v", s, err)
		}
		return
	}
}
