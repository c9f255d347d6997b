package optest

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"path"

	"codeberg.org/sbinet/npyio/npz"
	"github.com/attnb/attnb/reference"
	"gonum.org/v1/gonum/mat"
)

//go:embed testdata/golden/*.npz
var goldenFiles embed.FS

// golden is one captured attention layer: see testdata/golden/README.md for its arrays.
type golden struct {
	meta struct {
		Layout     string  `json:"layout"`
		Heads      int     `json:"heads"`
		KVHeads    int     `json:"kv_heads"` // 0: as many as heads
		HeadDim    int     `json:"head_dim"`
		Seq        int     `json:"seq"`
		Decode     int     `json:"decode"`
		Rotary     int     `json:"rotary_ndims"` // 0: no RoPE
		Base       float64 `json:"base"`
		Interleave bool    `json:"interleaved"`
		Scale      float64 `json:"scale"`
		Attention  float64 `json:"attention_factor"`
		Far        int     `json:"far"` // 0: not captured
	}
	arrays map[string]array
}

// array is a float64 array as it lies in the file.
type array struct {
	shape []int
	data  []float64
}

func readGolden(name string) (*golden, error) {
	raw, err := goldenFiles.ReadFile(path.Join("testdata/golden", name+".npz"))
	if err != nil {
		return nil, err
	}
	r, err := npz.NewReader(bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		return nil, err
	}
	g := &golden{arrays: map[string]array{}}
	for _, key := range r.Keys() {
		if err := g.read(r, key); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", name, key, err)
		}
	}
	if g.meta.KVHeads == 0 {
		g.meta.KVHeads = g.meta.Heads
	}
	return g, nil
}

func (g *golden) read(r *npz.Reader, key string) error {
	if key == "meta.npy" {
		var text []uint8
		if err := r.Read(key, &text); err != nil && err != io.EOF {
			return err
		}
		return json.Unmarshal(text, &g.meta)
	}
	var data []float64
	if err := r.Read(key, &data); err != nil {
		return err
	}
	g.arrays[key[:len(key)-len(".npy")]] = array{r.Header(key).Descr.Shape, data}
	return nil
}

// has reports whether the file holds an array.
func (g *golden) has(name string) bool { _, ok := g.arrays[name]; return ok }

// heads is an array [h, s, d], or a plain matrix as one head. An array [s, H, d] of decoded rows comes as one head [s, H*d].
func (g *golden) heads(name string) (reference.Heads, error) {
	a, ok := g.arrays[name]
	if !ok {
		return nil, fmt.Errorf("no array %s", name)
	}
	shape := a.shape
	if len(shape) == 2 {
		shape = []int{1, shape[0], shape[1]}
	}
	if name == "ctx_decode" {
		shape = []int{1, shape[0], shape[1] * shape[2]}
	}
	if len(shape) != 3 {
		return nil, fmt.Errorf("array %s has shape %v", name, a.shape)
	}
	x, n := make(reference.Heads, shape[0]), shape[1]*shape[2]
	for h := range x {
		x[h] = mat.NewDense(shape[1], shape[2], a.data[h*n:(h+1)*n])
	}
	return x, nil
}

// single rounds a float64 tensor to the f32 that the device takes.
func single(x reference.Heads) tensor {
	rows, dim := x[0].Dims()
	all := flat(x)
	return fill(len(x), rows, dim, func(i int) float64 { return all[i] })
}
