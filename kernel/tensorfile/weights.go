package tensorfile

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// weightsOf returns the path of a directory's weights, and what their headers say.
func weightsOf(dir string) (string, map[string]safeTensor, error) {
	single, index := filepath.Join(dir, singleFile), filepath.Join(dir, singleFile+indexEnding)
	if _, err := os.Stat(single); err == nil {
		tensors, err := headerOf(single)
		return single, tensors, err
	}
	if _, err := os.Stat(index); err != nil {
		return dir, nil, fmt.Errorf("neither %s nor %s: weights of other kinds cannot be read", singleFile, filepath.Base(index))
	}
	files, err := readIndex(index)
	if err != nil {
		return index, nil, err
	}
	headers := map[string]map[string]safeTensor{}
	tensors := make(map[string]safeTensor, len(files))
	for _, name := range slices.Sorted(maps.Keys(files)) {
		file := files[name]
		if headers[file] == nil {
			path, err := shard(index, file)
			if err != nil {
				return index, nil, err
			}
			if headers[file], err = headerOf(path); err != nil {
				return index, nil, fmt.Errorf("%s: %w", file, err)
			}
		}
		t, ok := headers[file][name]
		if !ok {
			return index, nil, fmt.Errorf("%.80q is not in %s, where the index has it", name, file)
		}
		tensors[name] = t
	}
	return index, tensors, nil
}

func headerOf(path string) (map[string]safeTensor, error) {
	f, size, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	tensors, _, err := safeHeader(f, size)
	return tensors, err
}

// locate completes the names of tensors, and sees that each is there and of its shape.
func (m *Model) locate(tensors map[string]safeTensor) error {
	if len(m.Layers) == 0 {
		return errors.New("a model without layers")
	}
	prefix := families[m.Family].prefix[0]
	if other := families[m.Family].prefix[1]; m.lies(tensors, other) && !m.lies(tensors, prefix) {
		prefix = other
	}
	for i := range m.Layers {
		l := &m.Layers[i]
		at := place{tensors: tensors, prefix: prefix + strconv.Itoa(i) + "."}
		q, kv := l.Heads*l.HeadDim, l.KVHeads*l.HeadDim
		at.vector(&l.Norm.Weight, m.Hidden)
		at.vector(&l.Norm.Bias, m.Hidden)
		if l.Layout == Separate {
			at.projection(&l.Q, m.Hidden, q)
			at.projection(&l.K, m.Hidden, kv)
			at.projection(&l.V, m.Hidden, kv)
		} else {
			at.projection(&l.QKV, m.Hidden, q+2*kv)
		}
		at.projection(&l.Out, q, m.Hidden)
		if at.err != nil {
			return at.err
		}
	}
	return nil
}

// lies reports whether layer 0 lies under a prefix.
func (m *Model) lies(tensors map[string]safeTensor, prefix string) bool {
	_, ok := tensors[prefix+"0."+m.Layers[0].Norm.Weight]
	return ok
}

// place looks for tensors of one layer, and keeps the first fault.
type place struct {
	tensors map[string]safeTensor
	prefix  string
	err     error
}

func (p *place) projection(w *Projection, in, out int) {
	shape := []int{out, in}
	if w.InOut {
		shape = []int{in, out}
	}
	// The config says whether there is a bias. Weights that say otherwise belong to another model.
	biasless := w.Bias == ""
	unexpected := p.prefix + w.Weight[:len(w.Weight)-len("weight")] + "bias"
	p.tensor(&w.Weight, shape)
	p.vector(&w.Bias, out)
	if _, there := p.tensors[unexpected]; biasless && there && p.err == nil {
		p.err = fmt.Errorf("%.120q is there, but %s has no bias there", unexpected, configFile)
	}
}

func (p *place) vector(name *string, n int) {
	if *name != "" {
		p.tensor(name, []int{n})
	}
}

func (p *place) tensor(name *string, shape []int) {
	*name = p.prefix + *name
	if p.err != nil {
		return
	}
	t, ok := p.tensors[*name]
	switch {
	case !ok:
		p.err = fmt.Errorf("no tensor %q", *name)
	case !slices.Equal(t.Shape, shape):
		p.err = fmt.Errorf("%q is %.80s, but %s calls for %v", *name, fmt.Sprint(t.Shape), configFile, shape)
	default:
		if _, ok := elements[t.DType]; !ok {
			p.err = fmt.Errorf("%q: dtype %.40q, only F16, BF16, F32 and F64 can be loaded", *name, t.DType)
		}
	}
}
