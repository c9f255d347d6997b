package resident

import "github.com/attnb/attnb/kernel/tensorfile"

// loadFile reads an array for a cell.
func loadFile(path, member string) (shape []int, data []float32, err error) {
	shape, data, err = tensorfile.Load(path, member)
	if err != nil {
		return nil, nil, fileError("Load", err)
	}
	return shape, data, nil
}
