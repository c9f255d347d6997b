package bundle

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// archive is what goes into the archive, by its name there. Equal contents make equal archives: no owner, no time, sorted.
type archive map[string]entry

// entry is a file, from disk or from memory, or a symbolic link.
type entry struct {
	path       string // on disk, or ""
	content    []byte
	link       string
	executable bool
}

// epoch is when all files of an archive were made.
var epoch = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

func (a archive) add(name string, content []byte) { a[name] = entry{content: content} }

// addFile adds a file or a link as it is on disk.
func (a archive) addFile(name, from string) error {
	info, err := os.Lstat(from)
	if err != nil {
		return err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		target, err := os.Readlink(from)
		a[name] = entry{link: target}
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is no file", from)
	}
	a[name] = entry{path: from, executable: info.Mode()&0o111 != 0}
	return nil
}

// addTree adds the files below dir for which keep, if there is one, says so. It is asked with slashes, and about directories too.
func (a archive) addTree(name, dir string, keep func(rel string, isDir bool) bool) error {
	return filepath.WalkDir(dir, func(from string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, from)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		switch {
		case rel == ".":
		case keep != nil && !keep(rel, d.IsDir()):
			if d.IsDir() {
				return fs.SkipDir
			}
		case !d.IsDir():
			return a.addFile(path.Join(name, rel), from)
		}
		return nil
	})
}

// addZip adds the files of a zip archive, each where place says, or nowhere for "".
func (a archive) addZip(file string, place func(name string) string) error {
	z, err := zip.OpenReader(file)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	defer z.Close()
	for _, f := range z.File {
		name := place(f.Name)
		if name == "" || strings.HasSuffix(f.Name, "/") {
			continue
		}
		r, err := f.Open()
		if err != nil {
			return fmt.Errorf("%s: %s: %w", file, f.Name, err)
		}
		content, err := io.ReadAll(r)
		_ = r.Close()
		if err != nil {
			return fmt.Errorf("%s: %s: %w", file, f.Name, err)
		}
		a.add(name, content)
	}
	return nil
}

// size is the number of bytes unpacked.
func (a archive) size() (int64, error) {
	var n int64
	for _, e := range a {
		n += int64(len(e.content))
		if e.path == "" {
			continue
		}
		info, err := os.Stat(e.path)
		if err != nil {
			return 0, err
		}
		n += info.Size()
	}
	return n, nil
}

// writeTar writes everything below one directory.
func (a archive) writeTar(w io.Writer, root string) error {
	names := make([]string, 0, len(a))
	for name := range a {
		names = append(names, name)
	}
	slices.Sort(names)
	t := tar.NewWriter(w)
	for _, name := range names {
		if err := a[name].write(t, path.Join(root, name)); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return t.Close()
}

func (e entry) write(t *tar.Writer, name string) error {
	header := &tar.Header{Name: name, Mode: 0o644, ModTime: epoch, Typeflag: tar.TypeReg, Format: tar.FormatPAX}
	if e.executable {
		header.Mode = 0o755
	}
	switch {
	case e.link != "":
		header.Typeflag, header.Linkname = tar.TypeSymlink, e.link
		return t.WriteHeader(header)
	case e.path == "":
		header.Size = int64(len(e.content))
		if err := t.WriteHeader(header); err != nil {
			return err
		}
		_, err := t.Write(e.content)
		return err
	}
	f, err := os.Open(e.path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	header.Size = info.Size()
	if err := t.WriteHeader(header); err != nil {
		return err
	}
	_, err = io.Copy(t, f)
	return err
}

//go:embed compress.py
var compressor string

// writeFile writes the archive, compressed when its name says so, and returns its size. Nothing is left of one that fails.
func (a archive) writeFile(ctx context.Context, file, python string) (size int64, err error) {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return 0, err
	}
	tmp, err := os.CreateTemp(filepath.Dir(file), ".attnb-bundle-*")
	if err != nil {
		return 0, err
	}
	defer func() {
		_ = tmp.Close()
		if err != nil {
			_ = os.Remove(tmp.Name())
		}
	}()
	compressed := filepath.Ext(file) == ".xz"
	if compressed {
		err = a.compress(ctx, tmp, python)
	} else {
		err = a.writeTar(tmp, Root)
	}
	if err != nil {
		return 0, err
	}
	info, err := tmp.Stat()
	if err != nil {
		return 0, err
	}
	if compressed && info.Size() > MaxSize {
		return 0, &TooLargeError{info.Size()}
	}
	if err := tmp.Chmod(0o644); err != nil {
		return 0, err
	}
	return info.Size(), os.Rename(tmp.Name(), file)
}

// compress compresses with Python: it is there wherever wheels can be had, and Go has no xz.
func (a archive) compress(ctx context.Context, to io.Writer, python string) error {
	reader, writer := io.Pipe()
	go func() { writer.CloseWithError(a.writeTar(writer, Root)) }()
	defer reader.Close()
	var errs bytes.Buffer
	cmd := exec.CommandContext(ctx, python, "-c", compressor)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = reader, to, &errs
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("compress with %s: %w\n%s", python, err, bytes.TrimSpace(errs.Bytes()))
	}
	return nil
}
