// Package tensorfile reads arrays from files that users bring: NumPy's .npy and .npz, and .safetensors. A header is believed only as far as
// the file bears it out, so that a hostile one makes nothing allocate more than the file holds.
package tensorfile

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
)

// Error is a file that cannot be loaded: one line that names it. It wraps fs.ErrNotExist or fs.ErrPermission where it is that.
type Error struct {
	Path string
	Err  error
}

func (e *Error) Error() string { return e.Path + ": " + e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

// Load reads the array of a .npy file, or the named one of a .npz or .safetensors file or of the index of several of these, as
// f32 in C order. member may be empty where there is one array. Errors are [*Error].
func Load(path, member string) (shape []int, data []float32, err error) {
	shape, data, err = load(path, member)
	if err != nil {
		return nil, nil, &Error{path, err}
	}
	return shape, data, nil
}

func load(path, member string) (shape []int, data []float32, err error) {
	if strings.HasSuffix(path, indexEnding) {
		return readShards(path, member)
	}
	f, size, err := openRegular(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	var magic [4]byte
	n, err := f.ReadAt(magic[:], 0)
	if err != nil && err != io.EOF {
		return nil, nil, bare(err)
	}
	switch start := string(magic[:n]); {
	case start == "PK\x03\x04" || start == "PK\x05\x06":
		return loadMember(f, size, member)
	case member != "" && start == npyMagic[:4]:
		return nil, nil, fmt.Errorf("a .npy file holds one array and no %q", member)
	case strings.HasSuffix(path, ".safetensors") || isSafetensors(f, size):
		return readSafetensors(f, size, member)
	}
	shape, data, err = readNpy(f, size)
	if errors.Is(err, errNotNpy) {
		err = errors.New("neither a .npy, a .npz nor a .safetensors file")
	}
	return shape, data, err
}

func openRegular(path string) (*os.File, int64, error) {
	if !filepath.IsAbs(path) {
		return nil, 0, errors.New("the path is not absolute")
	}
	info, err := os.Stat(path) // before opening: opening a pipe waits for its writer
	switch {
	case err != nil:
		return nil, 0, bare(err)
	case info.IsDir():
		return nil, 0, errors.New("a directory")
	case !info.Mode().IsRegular():
		return nil, 0, errors.New("not a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, bare(err)
	}
	return f, info.Size(), nil
}

// bare is an error of a file without the path, which [Error] has.
func bare(err error) error {
	var p *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return noSuchFile{}
	case errors.As(err, &p):
		return p.Err
	}
	return err
}

// noSuchFile is the same words on every system.
type noSuchFile struct{}

func (noSuchFile) Error() string { return "no such file" }
func (noSuchFile) Unwrap() error { return fs.ErrNotExist }

func loadMember(f io.ReaderAt, size int64, member string) ([]int, []float32, error) {
	z, err := zip.NewReader(f, size)
	if err != nil {
		return nil, nil, errors.New("a damaged .npz file")
	}
	var arrays []string
	found := map[string]*zip.File{}
	for _, file := range z.File {
		if name, ok := strings.CutSuffix(file.Name, ".npy"); ok {
			if found[name] == nil {
				arrays = append(arrays, name)
			}
			found[name] = file
		}
	}
	sort.Strings(arrays)
	member, err = choose(arrays, member)
	if err != nil {
		return nil, nil, err
	}
	file := found[member]
	if file.UncompressedSize64 > 8*maxElements+maxNpyHeader {
		return nil, nil, fmt.Errorf("array %q has %d bytes, too many", member, file.UncompressedSize64)
	}
	r, err := file.Open()
	if err != nil {
		return nil, nil, fmt.Errorf("array %q: %w", member, err)
	}
	defer r.Close()
	shape, data, err := readNpy(r, int64(file.UncompressedSize64))
	if err != nil {
		return nil, nil, fmt.Errorf("array %q: %w", member, err)
	}
	// Reading to the end lets the archive's checksum speak.
	if _, err := r.Read(make([]byte, 1)); err != io.EOF {
		return nil, nil, fmt.Errorf("array %q: %v", member, err)
	}
	return shape, data, nil
}

// choose returns the array that is meant: the named one, or the only one.
func choose(names []string, member string) (string, error) {
	switch {
	case member == "" && len(names) == 1:
		return names[0], nil
	case member == "":
		return "", errors.New("say which array: it holds " + list(names))
	case !slices.Contains(names, member):
		return "", fmt.Errorf("no array %q: it holds %s", member, list(names))
	}
	return member, nil
}

// list writes at most a dozen names.
func list(names []string) string {
	const most = 12
	if len(names) == 0 {
		return "no arrays"
	}
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}
