package attn

import (
	"fmt"
	"os"
	"strings"

	"github.com/attnb/attnb/kernel/wire"
)

// Load reads an array from a .npy file, or the one called member from a .npz or .safetensors file, or from the
// .safetensors files that an index (model.safetensors.index.json) lists. Its numbers may be f16, bf16, f32 or f64. A relative
// path starts at the cell's working directory. Axes are, by the number of dimensions: "dim"; "seq hidden"; "heads seq dim"; "batch heads
// seq dim". Where they are others, say so: Load(...).Axes("seq heads dim").
func Load(path string, member ...string) Tensor {
	path = absolute("Load", path)
	if len(member) > 1 {
		stop("Load: " + path + ": one array at a time")
	}
	r := wire.Request{Kind: wire.KindLoad, Path: path}
	if len(member) == 1 {
		r.Member = member[0]
	}
	return one(do(r))
}

// absolute is a path from the cell's working directory on.
func absolute(op, path string) string {
	if strings.HasPrefix(path, "/") {
		return path
	}
	dir, err := os.Getwd()
	if err != nil {
		stop(op + ": " + path + ": " + err.Error())
	}
	return dir + "/" + path
}

// FromSlice makes a tensor of data, its last index running fastest: FromSlice(x, "heads seq dim", 4, 9, 16).
// Axes are a word for each dimension (see [Tensor.Axes]), and the shape has as many elements as data. Values of another type are rounded
// to f32; one that is finite and does not fit is refused.
func FromSlice[F ~float32 | ~float64](data []F, axes string, shape ...int) Tensor {
	values := make([]float32, len(data))
	for i, v := range data {
		values[i] = float32(v)
		if values[i]-values[i] != 0 && v-v == 0 {
			stop(fmt.Sprintf("FromSlice: value %g of element %d does not fit f32", float64(v), i))
		}
	}
	return upload(values, strings.Fields(axes), shape)
}

func upload(values []float32, axes []string, shape []int) Tensor {
	a, err := connect().Upload(wire.Request{Kind: wire.KindUpload, Shape: shape, Axes: axes}, values)
	if err != nil {
		stop(err.Error())
	}
	return one(a)
}

// Download fetches the values, as many as the product of the shape, the last index running fastest.
func (x Tensor) Download() []float32 {
	data, err := connect().Download(wire.Request{Kind: wire.KindDownload, IDs: []int{x.t.ID}})
	if err != nil {
		stop(err.Error())
	}
	return data
}
