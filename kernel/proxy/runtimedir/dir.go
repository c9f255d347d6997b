// Package runtimedir owns the directory of a running kernel and the processes that belong to it. Every process that
// the kernel starts, and all that they start, has ATTNB_RUNTIME=<directory> in its environment; that is how they are
// found again, whatever group or session they put themselves in.
package runtimedir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// EnvRuntime names the environment variable that marks the processes of a kernel.
const EnvRuntime = "ATTNB_RUNTIME"

const (
	lockName = "lock"
	// A directory without a lock file may be one that another kernel is just creating.
	graceOfUnlocked = time.Minute
)

// Dir is a runtime directory that this process holds.
type Dir struct {
	Path string
	lock *os.File
}

// Create makes a directory that only this user can enter, and locks it for the life of the process. Directories that
// nobody holds any more are cleaned up first.
func Create() (*Dir, error) {
	parent, prefix := place()
	sweep(parent, prefix)
	path, err := os.MkdirTemp(parent, prefix) // mode 0700
	if err != nil {
		return nil, fmt.Errorf("runtime directory: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(path, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err == nil {
		err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	}
	if err != nil {
		os.RemoveAll(path)
		return nil, fmt.Errorf("runtime directory: %w", err)
	}
	return &Dir{Path: path, lock: lock}, nil
}

// File returns the path of a file in the directory.
func (d *Dir) File(name string) string { return filepath.Join(d.Path, name) }

// place returns where runtime directories are and how their names begin. Paths stay short: a unix socket's has a
// limit of 108 bytes.
func place() (parent, prefix string) {
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" && len(dir) < 60 {
		if info, err := os.Stat(dir); err == nil && info.IsDir() && ownedPrivate(info) {
			return dir, "attnb-"
		}
	}
	return "/tmp", fmt.Sprintf("attnb-%d-", os.Getuid())
}

func ownedPrivate(info os.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Getuid() && info.Mode().Perm()&0o077 == 0
}

// Remove ends every process of the directory and deletes it. The caller's own process is spared.
func (d *Dir) Remove() error {
	err := Clean(d.Path)
	d.lock.Close()
	return err
}

// Clean ends every process that is marked with the directory at path, and deletes it.
func Clean(path string) error {
	KillAll(path)
	err := os.RemoveAll(path)
	if err != nil {
		// A process may have been writing until it was killed.
		time.Sleep(20 * time.Millisecond)
		KillAll(path)
		err = os.RemoveAll(path)
	}
	return err
}

// KillAll kills every process marked with path but this one, until none is left.
func KillAll(path string) {
	for range 100 {
		left := false
		for _, pid := range Marked(path) {
			if pid != os.Getpid() {
				left = true
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		if !left {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// sweep removes the directories of kernels that ended without cleaning up.
func sweep(parent, prefix string) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return
	}
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), prefix) {
			continue
		}
		info, err := e.Info()
		if err != nil || !ownedPrivate(info) {
			continue
		}
		if strings.HasPrefix(e.Name(), prefix+named) && time.Since(info.ModTime()) < graceOfUnlocked {
			continue // the next process reads there what became of the one before
		}
		path := filepath.Join(parent, e.Name())
		if stale(path, info) {
			_ = Clean(path)
		}
	}
}

// stale reports whether nobody holds the directory's lock.
func stale(path string, info os.FileInfo) bool {
	lock, err := os.OpenFile(filepath.Join(path, lockName), os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return time.Since(info.ModTime()) > graceOfUnlocked
	}
	if err != nil {
		return false
	}
	defer lock.Close()
	return syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}
