package attn

import (
	"strings"

	"github.com/attnb/attnb/kernel/wire"
)

// onceHashes is set when the kernel links a cell, by -X: "name=hash;name=hash", for each call of Once a hash of the source
// text that it depends on. An empty name stands for those that are not in the list.
var onceHashes string

// Once returns the tensor of that name, and computes it first where it does not exist yet or where the source text of its
// declaration changed:
//
//	var qkv = attn.Once("qkv", func() attn.Tensor { return attn.Load("layer.npz", "qkv") })
//
// A package-level variable is evaluated again in every later cell; so written, it is computed once.
func Once(name string, compute func() Tensor) Tensor {
	hash := hashOf(onceHashes, name)
	a := do(wire.Request{Kind: wire.KindOnce, Name: name, Hash: hash})
	if len(a.Tensors) == 1 {
		return one(a)
	}
	x := compute()
	return one(do(wire.Request{Kind: wire.KindName, IDs: []int{x.t.ID}, Name: name, Hash: hash}))
}

// hashOf finds a name's hash, or else that of the empty name; "" where there is none. A name may hold = itself, a hash
// does not.
func hashOf(list, name string) string {
	rest := ""
	for entry := range strings.SplitSeq(list, ";") {
		i := strings.LastIndexByte(entry, '=')
		switch {
		case i < 0:
		case entry[:i] == name:
			return entry[i+1:]
		case i == 0:
			rest = entry[1:]
		}
	}
	return rest
}
