package peer

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
)

// Listen makes a socket that only this user reaches: its directory must be closed to others, and its own mode is 0600. A live server on it is an error;
// a stale socket is replaced.
func Listen(path string) (*net.UnixListener, error) {
	dir, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	if dir.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s: others can reach the directory (mode %04o, must be 0700)", filepath.Dir(path), dir.Mode().Perm())
	}
	if c, err := net.Dial("unix", path); err == nil {
		c.Close()
		return nil, fmt.Errorf("%s: a device process serves there already", path)
	}
	if info, err := os.Lstat(path); err == nil {
		if info.Mode()&os.ModeSocket == 0 {
			return nil, fmt.Errorf("%s: exists and is no socket", path)
		}
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}
