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
// a checkpoint. The answer says what was written, and Number how many bytes of values. It ends with ctx, and then leaves no file. Without a path
// nothing is written: the answer's Text is what [WriteFile] takes.
func Save(ctx context.Context, c *store.Client, r wire.Request) (wire.Answer, error) {
	const op = "Save"
	all, done, err := c.UseNamed(op, r.Names, r.Path == "")
	if err != nil {
		return wire.Answer{}, err
	}
	defer done()
	if len(all) == 0 {
		return wire.Answer{}, wire.Errorf(wire.NotFound, "%s: no tensor has a name", op)
	}
	a, kept := wire.Answer{}, map[string]entry{}
	c.Store.Lock()
	for _, x := range all {
		kept[x.Name] = entryOf(x, past(x.Node))
		a.Tensors = append(a.Tensors, wire.Tensor{ID: x.ID, Name: x.Name, Shape: x.Shape, Axes: x.Axes, Made: x.Node.Made()})
		a.Number += bytesOf(x.Shape)
	}
	c.Store.Unlock()
	text, err := encode(kept)
	if err != nil {
		return wire.Answer{}, wire.Errorf(wire.BadInput, "%s: %v", op, err)
	}
	if r.Path == "" {
		a.Text = text
		return a, nil
	}
	return a, WriteFile(ctx, r.Path, text, a.Tensors, func(i int) ([]float32, error) {
		values, err := c.Device.Under(ctx).Download(all[i].Buf)
		if err != nil {
			return nil, store.Explain(op, err, []store.Input{{Arg: "x", Name: all[i].Name, Meta: all[i].Meta}})
		}
		return values, nil
	})
}

// WriteFile writes the file at path: what Save said of tensors, and the values of each.
func WriteFile(ctx context.Context, path, text string, tensors []wire.Tensor, values func(i int) ([]float32, error)) error {
	const op = "Save"
	arrays, total := make([]tensorfile.SafeArray, len(tensors)), 0
	for i, t := range tensors {
		arrays[i] = tensorfile.SafeArray{Name: t.Name, Shape: t.Shape}
		total += bytesOf(t.Shape)
	}
	header, err := unsealed(text, arrays)
	if err != nil {
		return wire.Errorf(wire.BadInput, "%s: %v", op, err)
	}
	err = replace(ctx, path, func(f *os.File) error {
		sum := sha256.New()
		w := &both{ctx, f, sum}
		if _, err := w.Write(header); err != nil {
			return err
		}
		written := 0
		for i := range tensors {
			x, err := values(i)
			if err != nil {
				return err
			}
			if 4*len(x) != bytesOf(tensors[i].Shape) {
				return fmt.Errorf("%q: %d values", tensors[i].Name, len(x))
			}
			if err := tensorfile.WriteFloats(w, x); err != nil {
				return err
			}
			written += 4 * len(x)
			store.ProgressOf(ctx).Advance(float64(written) / float64(total))
		}
		_, err := f.WriteAt(hex.AppendEncode(nil, sum.Sum(nil)), int64(sealAt(header, noSeal)))
		return err
	})
	if err != nil {
		return failure(op, path, err)
	}
	return nil
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
// use. They appear together, once the whole file has been found as it was saved. Without a path the tensors r.IDs have the values, and r.Text is
// what [ReadFile] said of them.
func Restore(ctx context.Context, c *store.Client, r wire.Request) (wire.Answer, error) {
	const op = "Restore"
	if r.Path == "" {
		return publish(c, r)
	}
	var all []store.Restored
	vacant := func(names []string) error { return c.Vacant(op, names) }
	text, err := ReadFile(ctx, r.Path, r.Names, vacant, func(t wire.Tensor, values []float32) error {
		m := store.Meta{Shape: t.Shape, Axes: t.Axes}
		h, s, d := store.Fold(t.Shape)
		buf, err := c.Device.Under(ctx).Upload(values, h, s, d)
		if err != nil {
			return store.Explain(op, err, []store.Input{{Arg: "values", Name: t.Name, Meta: m}})
		}
		all = append(all, store.Restored{Named: store.Named{Operand: store.Operand{Buf: buf, Meta: m}, Name: t.Name}})
		return nil
	})
	if err == nil {
		err = complete(all, text, filepath.Base(r.Path))
	}
	if err != nil {
		store.Release(all)
		return wire.Answer{}, failure(op, r.Path, err)
	}
	return c.Publish(op, all)
}

// publish makes tensors of others' values, or says whether it could.
func publish(c *store.Client, r wire.Request) (wire.Answer, error) {
	const op = "Restore"
	switch {
	case len(r.IDs) == 0:
		return wire.Answer{}, c.Vacant(op, r.Names)
	case len(r.IDs) != len(r.Names):
		return wire.Answer{}, wire.Errorf(wire.BadRequest, "%s: %d tensors for %d names", op, len(r.IDs), len(r.Names))
	}
	in, _, _, done, err := c.Use(op, r.IDs, r.Names)
	if err != nil {
		return wire.Answer{}, err
	}
	defer done()
	all := make([]store.Restored, len(in))
	for i, x := range in {
		all[i].Named = store.Named{Operand: store.Operand{Meta: store.Meta{Shape: x.Shape}}, ID: r.IDs[i], Name: r.Names[i]}
	}
	if err := complete(all, r.Text, r.Member); err != nil {
		return wire.Answer{}, failure(op, r.Member, err)
	}
	return c.Publish(op, all)
}

// complete adds what the file of that name says of tensors.
func complete(all []store.Restored, text, file string) error {
	arrays := make([]tensorfile.SafeArray, len(all))
	for i, x := range all {
		arrays[i] = tensorfile.SafeArray{Name: x.Name, Shape: x.Shape}
	}
	kept, err := decode(text, arrays)
	if err != nil {
		return err
	}
	for i := range all {
		e := kept[all[i].Name]
		all[i].Meta, all[i].Hash, all[i].Source, all[i].Past = e.meta, e.Declaration, "restored from "+oneLine(file), e.past()
	}
	return nil
}

// ReadFile reads the tensors of these names, or all, of the file at path, and gives the values of each to use, with its shape and axes. begin hears before
// that which names they are. Only where no error is returned is the file as it was saved; text is what it says of the tensors.
func ReadFile(ctx context.Context, path string, names []string, begin func(names []string) error, use func(t wire.Tensor, values []float32) error) (text string, err error) {
	f, err := tensorfile.OpenSafe(path)
	if err == nil {
		defer f.Close()
		text, err = read(ctx, f, names, begin, use)
	}
	if err != nil {
		return "", failure("Restore", path, err)
	}
	return text, nil
}

func read(ctx context.Context, f *tensorfile.Safe, names []string, begin func([]string) error, use func(wire.Tensor, []float32) error) (string, error) {
	sum, seal, err := begun(f)
	if err != nil {
		return "", err
	}
	kept, err := decode(f.Metadata[keyTensors], f.Arrays)
	if err != nil {
		// A file that is damaged says so, and not what the damage looks like.
		if err := f.ReadData(&both{ctx, sum, nil}, func(string) bool { return false }, nil); err != nil {
			return "", err
		}
		if !sealed(sum, seal) {
			return "", errDamaged
		}
		return "", err
	}
	if names, err = choose(f, kept, names); err != nil {
		return "", err
	}
	if err := begin(names); err != nil {
		return "", err
	}
	chosen, total, done := map[string]entry{}, 0, 0
	for _, name := range names {
		chosen[name] = kept[name]
		total += bytesOf(kept[name].meta.Shape)
	}
	wanted := func(name string) bool { _, ok := chosen[name]; return ok }
	err = f.ReadData(&both{ctx, sum, nil}, wanted, func(a tensorfile.SafeArray, values []float32) error {
		err := use(wire.Tensor{Name: a.Name, Shape: a.Shape, Axes: kept[a.Name].Axes}, values)
		done += 4 * len(values)
		store.ProgressOf(ctx).Advance(float64(done) / float64(total))
		return err
	})
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil:
		return "", err
	case !sealed(sum, seal):
		return "", errDamaged
	}
	return encode(chosen)
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
	return slices.Compact(slices.Sorted(slices.Values(names))), nil
}
