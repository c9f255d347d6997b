package attn

import "github.com/attnb/attnb/kernel/wire"

// Save writes the tensors of these names, or all that have a name, to a .safetensors file, from which [Restore] brings them back, after a
// restart too: Save("run.safetensors", "q", "k"). The file appears whole or not at all. One that is there already is
// replaced if Save wrote it. A relative path starts at the cell's working directory. The command %save does the same.
//
// Kept are values, bit by bit, shape, axes, and what scores hand on to Softmax. The tensors that a value was computed from are not kept, only
// what the steps were, in words, in the file's metadata.
func Save(path string, names ...string) {
	do(wire.Request{Kind: wire.KindSave, Path: absolute("Save", path), Names: names})
}

// Restore brings back the tensors of these names, or all, from a file that [Save] wrote. They have their names again, none of which may
// be in use, and [Once] finds those of its declarations. All of them are there afterwards, or none: a file that was cut or changed since it
// was saved is refused. They are leaves: [Tensor.Check] of what is made of them begins with their values, and has nothing to
// say of the values themselves. The command %restore does the same.
func Restore(path string, names ...string) []Tensor {
	return all(do(wire.Request{Kind: wire.KindRestore, Path: absolute("Restore", path), Names: names}))
}
