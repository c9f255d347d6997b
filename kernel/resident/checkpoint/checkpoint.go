// Package checkpoint keeps named tensors in a file, and brings them back.
//
// The file has the .safetensors format, so that other programs read its arrays too. What a tensor is besides its values (axes, and of scores
// and probabilities their mask) is in the file's metadata, with the steps that made it, for people to read. A tensor that comes back is
// a leaf: a check of what is made of it begins with its values, as they were saved.
//
// A file is there whole or not at all: it is written under another name, brought to the disk, and then given its own. It bears a SHA-256
// of all its bytes, and where that does not fit no tensor of it is seen.
package checkpoint

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/attnb/attnb/kernel/resident/chain"
	"github.com/attnb/attnb/kernel/resident/store"
	"github.com/attnb/attnb/kernel/tensorfile"
	"github.com/attnb/attnb/kernel/wire"
)

// Save writes what has one of r.Names, or all that has a name, to the file r.Path. One that is there already is replaced where it is
// a checkpoint. The answer says what was written, and Number how many bytes of values. It ends with ctx, and then leaves no file.
func Save(ctx context.Context, c *store.Client, r wire.Request) (wire.Answer, error) {
	const op = "Save"
	all, done, err := c.UseNamed(op, r.Names)
	if err != nil {
		return wire.Answer{}, err
	}
	defer done()
	if len(all) == 0 {
		return wire.Answer{}, wire.Errorf(wire.NotFound, "%s: no tensor has a name", op)
	}
	a, kept, arrays := wire.Answer{}, map[string]entry{}, make([]tensorfile.SafeArray, len(all))
	c.Store.Lock()
	for i, x := range all {
		arrays[i] = tensorfile.SafeArray{Name: x.Name, Shape: x.Shape}
		kept[x.Name] = entryOf(x, past(x.Node))
		a.Tensors = append(a.Tensors, wire.Tensor{Name: x.Name, Shape: x.Shape, Axes: x.Axes, Made: x.Node.Made()})
		a.Number += bytesOf(x.Shape)
	}
	c.Store.Unlock()
	header, err := unsealed(kept, arrays)
	if err != nil {
		return wire.Answer{}, wire.Errorf(wire.BadInput, "%s: %v", op, err)
	}
	err = replace(ctx, r.Path, func(f *os.File) error {
		sum := sha256.New()
		w := &both{ctx, f, sum}
		if _, err := w.Write(header); err != nil {
			return err
		}
		written := 0
		for _, x := range all {
			values, err := c.Device.Under(ctx).Download(x.Buf)
			if err != nil {
				return store.Explain(op, err, []store.Input{{Arg: "x", Name: x.Name, Meta: x.Meta}})
			}
			if err := tensorfile.WriteFloats(w, values); err != nil {
				return err
			}
			written += 4 * len(values)
			store.ProgressOf(ctx).Advance(float64(written) / float64(a.Number))
		}
		_, err := f.WriteAt(hex.AppendEncode(nil, sum.Sum(nil)), int64(sealAt(header, noSeal)))
		return err
	})
	if err != nil {
		return wire.Answer{}, failure(op, r.Path, err)
	}
	return a, nil
}

// past is the steps that made the values of a node, in words. The store's lock is held.
func past(n *store.Node) []string {
	if n.Op == wire.OpNone && n.Past != nil {
		return n.Past
	}
	return chain.History(n)
}

func bytesOf(shape []int) int {
	n := 4
	for _, d := range shape {
		n *= d
	}
	return n
}

// Restore makes tensors of what the file r.Path holds under r.Names, or of all that it holds, under the same names, none of which may be in
// use. They appear together, once the whole file has been found as it was saved.
func Restore(ctx context.Context, c *store.Client, r wire.Request) (wire.Answer, error) {
	const op = "Restore"
	f, err := tensorfile.OpenSafe(r.Path)
	if err != nil {
		return wire.Answer{}, failure(op, r.Path, err)
	}
	defer f.Close()
	all, err := restore(ctx, c, f, r)
	if err != nil {
		store.Release(all)
		return wire.Answer{}, failure(op, r.Path, err)
	}
	return c.Publish(op, all)
}

// restore reads the file. What it returns is to be released in case of an error.
func restore(ctx context.Context, c *store.Client, f *tensorfile.Safe, r wire.Request) (all []store.Restored, err error) {
	const op = "Restore"
	sum, seal, err := begun(f)
	if err != nil {
		return nil, err
	}
	none := func(string) bool { return false }
	kept, err := decode(f.Metadata[keyTensors], f.Arrays)
	if err != nil {
		// A file that is damaged says so, and not what the damage looks like.
		if err := f.ReadData(&both{ctx, sum, nil}, none, nil); err != nil {
			return nil, err
		}
		if !sealed(sum, seal) {
			return nil, errDamaged
		}
		return nil, err
	}
	names, err := choose(f, kept, r.Names)
	if err != nil {
		return nil, err
	}
	if err := c.Vacant(op, names); err != nil {
		return nil, err
	}
	total, read := 0, 0
	for _, a := range f.Arrays {
		total += bytesOf(a.Shape)
	}
	wanted := func(name string) bool { return slices.Contains(names, name) }
	err = f.ReadData(&both{ctx, sum, nil}, wanted, func(a tensorfile.SafeArray, values []float32) error {
		e := kept[a.Name]
		h, s, d := store.Fold(a.Shape)
		buf, err := c.Device.Under(ctx).Upload(values, h, s, d)
		if err != nil {
			return store.Explain(op, err, []store.Input{{Arg: "values", Name: a.Name, Meta: e.meta}})
		}
		read += 4 * len(values)
		store.ProgressOf(ctx).Advance(float64(read) / float64(total))
		all = append(all, store.Restored{Named: store.Named{Operand: store.Operand{Buf: buf, Meta: e.meta}, Name: a.Name, Hash: e.Declaration},
			Source: "restored from " + filepath.Base(r.Path), Past: e.past()})
		return nil
	})
	switch {
	case ctx.Err() != nil:
		return all, ctx.Err()
	case err != nil:
		return all, err
	case !sealed(sum, seal):
		return all, errDamaged
	}
	return all, nil
}

// errDamaged is a file that is not as it was saved.
var errDamaged = errors.New("cut or changed since it was saved: its SHA-256 is another")

// choose is the names that are meant: those given, each once, or all.
func choose(f *tensorfile.Safe, kept map[string]entry, names []string) ([]string, error) {
	var holds []string
	for _, a := range f.Arrays {
		holds = append(holds, a.Name)
	}
	if len(names) == 0 {
		return holds, nil
	}
	for _, name := range names {
		if _, ok := kept[name]; ok {
			continue
		}
		const most = 12
		list, more := holds[:min(len(holds), most)], ""
		if len(holds) > most {
			more = fmt.Sprintf(" and %d more", len(holds)-most)
		}
		return nil, wire.Errorf(wire.NotFound, "Restore: %s holds no %q, but %s%s", filepath.Base(f.Path), name, strings.Join(list, ", "), more)
	}
	return names, nil
}
