package peer

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
)

// nobody is a user that this test is not.
const nobody = 65534

// client is set in a process that is to connect there, and nothing more.
const client = "ATTNB_TEST_PEER"

func TestMain(m *testing.M) {
	if path := os.Getenv(client); path != "" {
		c, err := net.Dial("unix", path)
		if err != nil {
			os.Exit(1)
		}
		_, _ = c.Read(make([]byte, 1)) // until the other end closes
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// connected starts a client with the credentials, and returns what Check says of it.
func connected(t *testing.T, as *syscall.Credential) error {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "attnb-peer-") // which the other user can enter
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "client")
	text, err := os.ReadFile(os.Args[0])
	if err == nil {
		err = errors.Join(os.WriteFile(program, text, 0o755), os.Chmod(dir, 0o755))
	}
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program)
	cmd.Dir, cmd.Env = "/", append(os.Environ(), client+"="+path)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: as}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c, err := l.AcceptUnix()
	if err != nil {
		t.Fatal(err)
	}
	said := Check(c)
	c.Close()
	if err := cmd.Wait(); err != nil {
		t.Errorf("the client: %v", err)
	}
	return said
}

func TestOwnUserIsLetIn(t *testing.T) {
	if err := connected(t, nil); err != nil {
		t.Error(err)
	}
}

func TestAnotherUserIsRefused(t *testing.T) {
	if os.Getuid() != 0 || runtime.GOOS != "linux" {
		t.Skip("only root on Linux can be two users")
	}
	var e *Error
	if err := connected(t, &syscall.Credential{Uid: nobody, Gid: nobody}); !errors.As(err, &e) || e.UID != nobody {
		t.Errorf("%v, want that the client is of user %d", err, nobody)
	}
}

func TestClosedConnection(t *testing.T) {
	a, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(t.TempDir(), "s"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	c, err := net.DialUnix("unix", nil, a.Addr().(*net.UnixAddr))
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	if Check(c) == nil {
		t.Error("a closed connection is of this user")
	}
}
