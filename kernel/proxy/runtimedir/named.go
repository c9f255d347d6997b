package runtimedir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// ErrHeld says that another process holds a directory.
var ErrHeld = errors.New("another process holds the runtime directory")

// named is in the names of directories that another process may yet hold: what a sweep leaves alone for a while.
const named = "far-"

// Named makes the directory of that name, which must be hard to guess, or finds it. It is in /tmp: what XDG_RUNTIME_DIR names goes when its user logs out.
func Named(name string) (path string, err error) {
	path = filepath.Join("/tmp", fmt.Sprintf("attnb-%d-%s%s", os.Getuid(), named, name))
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("runtime directory: %w", err)
	}
	info, err := os.Lstat(path)
	if err != nil {
		return "", fmt.Errorf("runtime directory: %w", err)
	}
	if !info.IsDir() || !ownedPrivate(info) {
		return "", fmt.Errorf("runtime directory: %s: not a directory that is this user's alone", path)
	}
	return path, nil
}

// Hold locks a directory for the life of the process, or returns [ErrHeld]. One that is being removed is held, too.
func Hold(path string) (*Dir, error) {
	lock, err := os.OpenFile(filepath.Join(path, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrHeld
	}
	if err != nil {
		return nil, fmt.Errorf("runtime directory: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		lock.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, ErrHeld
		}
		return nil, fmt.Errorf("runtime directory: %w", err)
	}
	return &Dir{Path: path, lock: lock}, nil
}
