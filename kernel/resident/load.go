package resident

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/attnb/attnb/kernel/wire"
)

// loadFile reads an array of a .npy file, or the named one of a .npz file. Errors are one line and name the file.
func loadFile(path, member string) (shape []int, data []float32, err error) {
	f, size, err := openRegular(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	refuse := func(format string, args ...any) error {
		return wire.Errorf(wire.BadInput, "Load: %s: "+format, append([]any{path}, args...)...)
	}
	var magic [4]byte
	n, err := f.ReadAt(magic[:], 0)
	if err != nil && err != io.EOF {
		return nil, nil, refuse("%v", errors.Unwrap(err))
	}
	if start := string(magic[:n]); start == "PK\x03\x04" || start == "PK\x05\x06" {
		shape, data, err = loadMember(f, size, member)
	} else if member != "" && string(magic[:n]) == npyMagic[:4] {
		return nil, nil, refuse("a .npy file holds one array and no %q", member)
	} else {
		shape, data, err = readNpy(f, size)
		if errors.Is(err, errNotNpy) {
			return nil, nil, refuse("neither a .npy nor a .npz file")
		}
	}
	if err != nil {
		return nil, nil, refuse("%v", err)
	}
	return shape, data, nil
}

func openRegular(path string) (*os.File, int64, error) {
	if !filepath.IsAbs(path) {
		return nil, 0, wire.Errorf(wire.BadRequest, "Load: %s: the path is not absolute", path)
	}
	info, err := os.Stat(path) // before opening: opening a pipe waits for its writer
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, 0, wire.Errorf(wire.NotFound, "Load: %s: no such file", path)
	case err != nil:
		return nil, 0, wire.Errorf(wire.NotFound, "Load: %s: %v", path, errors.Unwrap(err))
	case info.IsDir():
		return nil, 0, wire.Errorf(wire.BadInput, "Load: %s: a directory", path)
	case !info.Mode().IsRegular():
		return nil, 0, wire.Errorf(wire.BadInput, "Load: %s: not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, wire.Errorf(wire.Refused, "Load: %s: %v", path, errors.Unwrap(err))
	}
	return f, info.Size(), nil
}

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
	if member == "" && len(arrays) == 1 {
		member = arrays[0]
	}
	file := found[member]
	if file == nil {
		holds := "it holds " + list(arrays)
		if member == "" {
			return nil, nil, fmt.Errorf("say which array: %s", holds)
		}
		return nil, nil, fmt.Errorf("no array %q: %s", member, holds)
	}
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
