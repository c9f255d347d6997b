package spec

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// copyFile copies from to to, through a temporary file and a rename: a running program keeps the old one.
func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	return writeFile(to, info.Mode().Perm()|0o200, func(w io.Writer) error {
		_, err := io.Copy(w, in)
		return err
	})
}

// writeFile makes a file whole or not at all.
func writeFile(path string, mode fs.FileMode, fill func(io.Writer) error) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".attnb-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = tmp.Close()
			_ = os.Remove(tmp.Name())
		}
	}()
	if err := fill(tmp); err != nil {
		return err
	}
	if err := tmp.Chmod(mode); err != nil {
		return err
	}
	if err := tmp.Close(); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}

// copyTree copies a directory, links kept as they are. With link, files that can be are hard links.
func copyTree(from, to string, link bool) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		switch {
		case entry.IsDir():
			return os.MkdirAll(target, 0o755)
		case entry.Type()&fs.ModeSymlink != 0:
			dest, err := os.Readlink(path)
			if err != nil {
				return err
			}
			return os.Symlink(dest, target)
		case link && os.Link(path, target) == nil:
			return nil
		}
		return copyFile(path, target)
	})
}

// replaceTree puts what fill writes in place of dir, all or nothing.
func replaceTree(dir string, fill func(tmp string) error) (err error) {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), ".attnb-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	fresh, old := filepath.Join(tmp, "new"), filepath.Join(tmp, "old")
	if err := os.Mkdir(fresh, 0o755); err != nil {
		return err
	}
	if err := fill(fresh); err != nil {
		return err
	}
	if err := os.Rename(dir, old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Rename(fresh, dir)
}

// report is where an installation says what it writes.
type report struct{ out io.Writer }

func (r report) wrote(path string)   { fmt.Fprintf(r.out, "  wrote    %s\n", path) }
func (r report) removed(path string) { fmt.Fprintf(r.out, "  removed  %s\n", path) }
