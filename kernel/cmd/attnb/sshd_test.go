package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/attnb/attnb/cudaops/devices"
	"github.com/attnb/attnb/kernel/far"
	"github.com/attnb/attnb/kernel/proxy/runtimedir"
	"github.com/attnb/attnb/kernel/wire"
)

// sshd is a server on the loopback interface, with keys of its own, that lets in whoever runs this test, for whom attnb is this very program.
type sshd struct {
	t      testing.TB
	dir    string
	config string // of ssh
	port   int
	cmd    *exec.Cmd
}

// startSSHD starts one; settings are more lines of its configuration.
func startSSHD(t testing.TB, settings ...string) *sshd {
	t.Helper()
	program, err := exec.LookPath("sshd")
	if err != nil {
		if program = "/usr/sbin/sshd"; exec.Command(program, "-V").Run() != nil && !isFile(program) {
			t.Skip("no sshd: ./install.sh test installs Debian's openssh-server where it may")
		}
	}
	dir, err := os.MkdirTemp("/tmp", "attnb-ssh-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := &sshd{t: t, dir: dir, config: filepath.Join(dir, "ssh.conf")}
	for _, key := range []string{"host", "user"} {
		if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(dir, key)).CombinedOutput(); err != nil {
			t.Fatalf("ssh-keygen: %v\n%s", err, out)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.port = l.Addr().(*net.TCPAddr).Port
	l.Close()
	public, err := os.ReadFile(filepath.Join(dir, "host.pub"))
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("known", fmt.Sprintf("[127.0.0.1]:%d %s", s.port, public))
	write("ssh.conf", fmt.Sprintf("IdentityFile %s/user\nIdentitiesOnly yes\nIdentityAgent none\nUserKnownHostsFile %s/known\nGlobalKnownHostsFile /dev/null\nStrictHostKeyChecking yes\n", dir, dir))
	write("sshd.conf", strings.Join(append(settings, fmt.Sprintf("ListenAddress 127.0.0.1:%d", s.port), "HostKey "+dir+"/host", "AuthorizedKeysFile "+dir+"/user.pub",
		"StrictModes no", "UsePAM no", "PasswordAuthentication no", "PidFile none", "PermitRootLogin yes", "SetEnv ATTNB_TEST_MAIN=1 "+devices.Variable+"=host"), "\n")+"\n")
	if os.Getuid() == 0 {
		_ = os.Mkdir("/run/sshd", 0o755) // which sshd separates its privileges in; it is there where the system runs one
	}
	s.cmd = exec.Command(program, "-D", "-e", "-f", filepath.Join(dir, "sshd.conf"))
	var said bytes.Buffer
	s.cmd.Stderr = &said
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
		if t.Failed() {
			t.Logf("sshd: %s", &said)
		}
	})
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		c, err := net.Dial("tcp", "127.0.0.1:"+strconv.Itoa(s.port))
		if err == nil {
			c.Close()
			return s
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

func (s *sshd) url() string { return fmt.Sprintf("ssh://127.0.0.1:%d", s.port) }

// environ is that of a kernel whose device is there.
func (s *sshd) environ() []string {
	return []string{devices.Variable + "=" + s.url(), far.SSHVariable + "=ssh -F " + s.config, far.PathVariable + "=" + os.Args[0], "ATTNB_TEST_MAIN=1"}
}

// slowSSH has this program be an ssh that takes 400 kB a second.
const slowSSH = "slow-ssh"

func throttledSSH(args []string) int {
	cmd := exec.Command("ssh", args...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 255
	}
	go func() {
		defer in.Close()
		buf := make([]byte, 4<<10)
		for {
			n, err := os.Stdin.Read(buf)
			if _, broken := in.Write(buf[:n]); err != nil || broken != nil {
				return
			}
			time.Sleep(time.Duration(n) * time.Second / 400_000)
		}
	}()
	_ = cmd.Wait()
	return cmd.ProcessState.ExitCode()
}

// relay is one that serves in this process.
type relay struct {
	t      testing.TB
	socket string
	token  string
	stop   context.CancelFunc
	ended  chan error
	s      *sshd
}

func startRelay(s *sshd, set func(*far.Options)) *relay {
	s.t.Helper()
	target, err := far.ParseTarget(s.url())
	if err != nil {
		s.t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "attnb-r-")
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { os.RemoveAll(dir) })
	r := &relay{t: s.t, socket: filepath.Join(dir, "s"), token: "token-of-" + filepath.Base(dir), ended: make(chan error, 1), s: s}
	o := far.Options{Socket: r.socket, Token: r.token, Version: version, Target: target, SSH: []string{"ssh", "-F", s.config}, Path: os.Args[0], Grace: time.Minute,
		Log: slog.New(slog.NewTextHandler(testLog{s.t}, nil))}
	if set != nil {
		set(&o)
	}
	r.token = o.Token
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	go func() { r.ended <- far.Relay(ctx, o) }()
	s.t.Cleanup(func() {
		stop()
		<-r.ended
		r.gone()
	})
	return r
}

type testLog struct{ t testing.TB }

func (l testLog) Write(b []byte) (int, error) {
	l.t.Logf("%s", bytes.TrimSpace(b))
	return len(b), nil
}

// gone checks that the device process there has ended, and left nothing.
func (r *relay) gone() {
	r.t.Helper()
	socket, err := farSocket(r.token)
	if err != nil {
		r.t.Fatal(err)
	}
	dir := filepath.Dir(socket)
	_ = os.Remove(dir) // farSocket has made it where it was gone
	eventually(r.t, "nothing is left of the device process", func() bool {
		_, err := os.Stat(dir)
		return errors.Is(err, os.ErrNotExist) && len(serving(dir)) == 0
	})
}

// serving are the device processes that serve in the directory.
func serving(dir string) []int { return withArguments("far", "serve", dir) }

// withArguments are the processes whose command line ends so.
func withArguments(last ...string) (pids []int) {
	entries, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, e := range entries {
		text, err := os.ReadFile(e)
		if err != nil {
			continue
		}
		args := strings.Split(strings.TrimRight(string(text), "\x00"), "\x00")
		if n := len(args) - len(last); n >= 0 && slices.Equal(args[n:], last) {
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(e))); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// sshPID is the ssh that this process runs for the relay.
func (r *relay) sshPID() int {
	r.t.Helper()
	for _, pid := range runtimedir.Children(os.Getpid()) {
		text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
		if err == nil && bytes.Contains(text, []byte(r.s.config)) {
			return pid
		}
	}
	r.t.Fatal("no ssh runs")
	return 0
}

func (r *relay) kill(sig syscall.Signal) {
	r.t.Helper()
	if err := syscall.Kill(r.sshPID(), sig); err != nil {
		r.t.Fatal(err)
	}
}

func (r *relay) dial() *wire.Conn {
	r.t.Helper()
	var conn *wire.Conn
	eventually(r.t, "the relay answers", func() bool {
		var err error
		conn, err = wire.DialAs(r.socket, r.token)
		return err == nil
	})
	r.t.Cleanup(func() { conn.Close() })
	return conn
}

func eventually(t testing.TB, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not after 30 s", what)
		}
	}
}

// status is that of the device process, over a link that there is.
func status(c *wire.Conn) (wire.Status, error) {
	if _, err := c.Do(wire.Request{Kind: wire.KindList}); err != nil {
		return wire.Status{}, err
	}
	return c.Status()
}

func put(t testing.TB, c *wire.Conn, values []float32) wire.Tensor {
	t.Helper()
	a, err := c.Upload(wire.Request{Kind: wire.KindUpload, Shape: []int{len(values)}, Axes: []string{"dim"}}, values)
	if err != nil || len(a.Tensors) != 1 {
		t.Fatalf("%+v, %v", a, err)
	}
	return a.Tensors[0]
}

func named(t testing.TB, c *wire.Conn, name string, values []float32) wire.Tensor {
	t.Helper()
	x := put(t, c, values)
	if _, err := c.Do(wire.Request{Kind: wire.KindName, IDs: []int{x.ID}, Name: name}); err != nil {
		t.Fatal(err)
	}
	return x
}

// has downloads a tensor, which must be these values, bit for bit.
func has(t testing.TB, c *wire.Conn, id int, values []float32) {
	t.Helper()
	got, err := c.Download(wire.Request{Kind: wire.KindDownload, IDs: []int{id}})
	if err != nil {
		t.Errorf("tensor %d: %v", id, err)
	} else if !bytes.Equal(wire.FloatBytes(got), wire.FloatBytes(values)) {
		t.Errorf("tensor %d is another one", id)
	}
}
