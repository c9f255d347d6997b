package resident

import (
	"errors"
	"io/fs"

	"github.com/attnb/attnb/kernel/tensorfile"
	"github.com/attnb/attnb/kernel/wire"
)

// loadFile reads an array for a cell.
func loadFile(path, member string) (shape []int, data []float32, err error) {
	shape, data, err = tensorfile.Load(path, member)
	if err == nil {
		return shape, data, nil
	}
	code := wire.BadInput
	switch {
	case errors.Is(err, fs.ErrNotExist):
		code = wire.NotFound
	case errors.Is(err, fs.ErrPermission):
		code = wire.Refused
	}
	return nil, nil, wire.Errorf(code, "Load: %v", err)
}
