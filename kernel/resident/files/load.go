// Package files reads the files that cells name, on the machine of the cells: arrays, and what a model's directory says.
package files

import (
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/attnb/attnb/kernel/resident/store"
	"github.com/attnb/attnb/kernel/tensorfile"
	"github.com/attnb/attnb/kernel/wire"
)

// Load reads the array that a request of KindLoad names. The request that it returns says the array's shape and axes too. Errors are [*wire.Error].
func Load(r wire.Request) (wire.Request, []float32, error) {
	shape, values, err := tensorfile.Load(r.Path, r.Member)
	if err != nil {
		return r, nil, refusal("Load", err)
	}
	if len(shape) == 0 {
		return r, nil, wire.Errorf(wire.BadInput, "Load: %s: a scalar, not an array", Source(r))
	}
	r.Shape, r.Axes = shape, store.DefaultAxes(len(shape))
	return r, values, nil
}

// Source is what a lineage calls the array that a request of KindLoad names.
func Source(r wire.Request) string {
	if r.Member == "" {
		return filepath.Base(r.Path)
	}
	return filepath.Base(r.Path) + ": " + r.Member
}

// refusal is a file that cannot be read, for a cell.
func refusal(op string, err error) error {
	code := wire.BadInput
	switch {
	case errors.Is(err, fs.ErrNotExist):
		code = wire.NotFound
	case errors.Is(err, fs.ErrPermission):
		code = wire.Refused
	}
	return wire.Errorf(code, "%s: %v", op, err)
}
