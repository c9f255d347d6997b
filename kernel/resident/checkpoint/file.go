package checkpoint

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/kernel/resident/store"
	"github.com/attnb/attnb/kernel/tensorfile"
	"github.com/attnb/attnb/kernel/wire"
)

// replace writes a file and then puts it at path, in place of a checkpoint that may be there. After an error what was there is there still,
// and nothing else is.
func replace(ctx context.Context, path string, write func(*os.File) error) (err error) {
	if !filepath.IsAbs(path) {
		return errors.New("the path is not absolute")
	}
	mode, old := fs.FileMode(0o666), false
	switch info, err := os.Stat(path); {
	case err == nil:
		if path, err = filepath.EvalSymlinks(path); err != nil {
			return err
		}
		if !info.Mode().IsRegular() || !isCheckpoint(path) {
			return errors.New("is there already and is no checkpoint: remove it first, or save to another file")
		}
		mode, old = info.Mode().Perm(), true
	case !errors.Is(err, fs.ErrNotExist):
		return err
	default:
		if _, err := os.Lstat(path); err == nil {
			return errors.New("a link to nothing")
		}
	}
	// In the same directory: a file is renamed within a file system.
	f, err := os.OpenFile(filepath.Join(filepath.Dir(path), unfinished+rand.Text()+saving), os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
	if errors.Is(err, fs.ErrNotExist) {
		return errNoDirectory
	}
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err == nil {
		sweep(filepath.Dir(path))
	}
	if old {
		if err := f.Chmod(mode); err != nil {
			return err
		}
	}
	if err := write(f); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	// The file is whole and has its name; what is left is that the name is on the disk too, which not every file system can be told.
	if dir, err := os.Open(filepath.Dir(path)); err == nil {
		_ = dir.Sync()
		dir.Close()
	}
	return nil
}

// What a file is called while it is written.
const (
	unfinished = ".attnb-"
	saving     = ".saving"
)

// sweep removes what saves that were killed have left. One that lives holds a lock.
func sweep(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || !strings.HasPrefix(e.Name(), unfinished) || !strings.HasSuffix(e.Name(), saving) {
			continue
		}
		info, err := e.Info()
		if err != nil || time.Since(info.ModTime()) < time.Minute { // it may not have its lock yet
			continue
		}
		f, err := os.Open(filepath.Join(dir, e.Name()))
		if err != nil {
			continue
		}
		if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			os.Remove(f.Name())
		}
		f.Close()
	}
}

type noDirectory struct{}

func (noDirectory) Error() string { return "no such directory" }
func (noDirectory) Unwrap() error { return fs.ErrNotExist }

var errNoDirectory = noDirectory{}

func isCheckpoint(path string) bool {
	f, err := tensorfile.OpenSafe(path)
	if err != nil {
		return false
	}
	defer f.Close()
	return f.Metadata[keyTensors] != ""
}

// both writes to one or two writers until ctx ends.
type both struct {
	ctx           context.Context
	first, second io.Writer // second: nil for none
}

func (b *both) Write(p []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := b.first.Write(p)
	if err == nil && b.second != nil {
		_, err = b.second.Write(p)
	}
	return n, err
}

// failure is what the client is told of an error.
func failure(op, path string, err error) error {
	var (
		known *wire.Error
		fault *store.DeviceFault
		file  *tensorfile.Error
		place *fs.PathError
		link  *os.LinkError
	)
	switch {
	case errors.As(err, &fault), errors.As(err, &known):
		return err
	case errors.Is(err, context.Canceled), errors.Is(err, cudaops.ErrInterrupted):
		return wire.Errorf(wire.Refused, "%s: interrupted", op)
	}
	code := wire.BadInput
	switch {
	case errors.Is(err, fs.ErrNotExist):
		code = wire.NotFound
	case errors.Is(err, fs.ErrPermission):
		code = wire.Refused
	}
	// What an error of the system says of the path, path says already.
	switch {
	case errors.As(err, &file):
		err = file.Err
	case errors.As(err, &place):
		err, code = place.Err, wire.Refused
	case errors.As(err, &link):
		err, code = link.Err, wire.Refused
	}
	return wire.Errorf(code, "%s: %s: %v", op, path, err)
}
