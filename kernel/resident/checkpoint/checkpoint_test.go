package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/cudaops/host"
	"github.com/attnb/attnb/kernel/resident/store"
	"github.com/attnb/attnb/kernel/tensorfile"
	"github.com/attnb/attnb/kernel/wire"
)

// client is one of a device of its own, on which nothing is left when the test ends.
func client(t *testing.T) *store.Client {
	t.Helper()
	d, s := cudaops.NewDevice(host.New(host.Options{Workers: 1})), store.New()
	c := store.NewClient(t.Context(), d, s)
	t.Cleanup(func() {
		c.Close()
		s.Clear()
		if n := d.InUse(); n != 0 {
			t.Errorf("%d bytes in use at the end", n)
		}
		d.Close()
	})
	return c
}

func named(t *testing.T, c *store.Client, name string, shape ...int) {
	t.Helper()
	n := 1
	for _, d := range shape {
		n *= d
	}
	values := make([]float32, n)
	for i := range values {
		values[i] = float32(i)
	}
	a, err := c.Leaf("FromSlice", store.Origin{Source: "FromSlice"}, shape, store.DefaultAxes(len(shape)), store.FromSlice(values))
	if err == nil {
		_, err = c.SetName(wire.Request{Name: name, IDs: []int{a.Tensors[0].ID}})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// fuse is a context that is done once it has been asked so often.
type fuse struct {
	context.Context
	left atomic.Int64
}

func (f *fuse) Err() error {
	if f.left.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

func names(dir string) (all []string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// At whatever point it is interrupted, a save leaves what was there and nothing else, and a restore no tensor.
func TestInterruptedAnywhere(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x")
	c := client(t)
	named(t, c, "a", 3, 70000) // more than is written or read at a time
	named(t, c, "b", 5)
	before := wire.Request{Path: path, Names: []string{"b"}}
	if _, err := Save(t.Context(), c, before); err != nil {
		t.Fatal(err)
	}
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	tries := 0
	for ; ; tries++ {
		ctx := &fuse{Context: t.Context()}
		ctx.left.Store(int64(tries))
		_, err := Save(ctx, c, wire.Request{Path: path})
		if err == nil {
			break
		}
		if now, _ := os.ReadFile(path); err.Error() != "Save: interrupted" || string(now) != string(old) || len(names(dir)) != 1 {
			t.Fatalf("save, %d: %v; %q", tries, err, names(dir))
		}
	}
	if tries < 5 {
		t.Errorf("a save can be interrupted at %d points", tries)
	}
	d := client(t)
	for tries = 0; ; tries++ {
		ctx := &fuse{Context: t.Context()}
		ctx.left.Store(int64(tries))
		_, err := Restore(ctx, d, wire.Request{Path: path})
		if err == nil {
			break
		}
		if err.Error() != "Restore: interrupted" || d.Store.Count() != 0 || d.Device.InUse() != 0 {
			t.Fatalf("restore, %d: %v; %d tensors, %d bytes", tries, err, d.Store.Count(), d.Device.InUse())
		}
	}
	if tries < 5 || d.Store.Count() != 2 {
		t.Errorf("a restore can be interrupted at %d points; %d tensors", tries, d.Store.Count())
	}
}

// What fails on its way, here the disk, leaves no file.
func TestFailedWrite(t *testing.T) {
	dir := t.TempDir()
	err := replace(t.Context(), filepath.Join(dir, "x"), func(f *os.File) error {
		if _, err := f.WriteString("half"); err != nil {
			t.Fatal(err)
		}
		return &os.PathError{Op: "write", Path: f.Name(), Err: errors.New("no space left on device")}
	})
	if got, want := failure("Save", "/x", err).Error(), "Save: /x: no space left on device"; got != want || len(names(dir)) != 0 {
		t.Errorf("%s, want %s; %q", got, want, names(dir))
	}
}

// What a description may not say.
func TestDecodeRefuses(t *testing.T) {
	scores := []tensorfile.SafeArray{{Name: "s", Shape: []int{2, 3, 4}}}
	const axes = `"axes":["heads","query","key"],"made_by":[]`
	for text, want := range map[string]string{
		``:                                  "its description is malformed",
		`[]`:                                "its description is malformed",
		`{"version":1,"tensors":{}} {}`:     "its description is malformed",
		`{"version":1,"tensors":{},"a":1}`:  "its description is malformed",
		`{"version":2,"tensors":{"s":{}}}`:  "a checkpoint of version 2, this program reads version 1",
		`{"version":1,"tensors":{}}`:        "it describes 0 tensors and holds 1",
		`{"version":1,"tensors":{"t":{}}}`:  `it holds "s" and does not describe it`,
		`{"version":1,"tensors":{"s":{}}}`:  `"s": 0 axes () for shape [2 3 4]`,
		one(`"axes":["a","a","b"]`):         `"s": axis "a" is named twice`,
		one(axes + `,"quantity":"weights"`): `"s": quantity "weights"`,
		one(axes + `,"mask":{"window":-1}`): `"s": window -1 is not within 1 to 4294967295; 0 is none`,
		one(axes + `,"mask":{"causal":true,"diagonal":1099511627776}`):                                    `"s": diagonal 1099511627776 is not within -4294967295 to 4294967295`,
		one(axes + `,"mask":{"diagonal":9223372036854775807}`):                                            `"s": diagonal 9223372036854775807 is not within -4294967295 to 4294967295`,
		one(axes + `,"mask":{"pad_left":5}`):                                                              `"s": padding of 5 and 0 columns does not fit 4`,
		one(axes + `,"mask":{"documents":[3]}`):                                                           `"s": 1 documents leave 1 of 4 columns`,
		one(axes + `,"softcap":-1`):                                                                       `"s": softcap is -1, must be positive and finite in f32; leave it out for none`,
		one(axes + `,"slopes":[1]`):                                                                       `"s": 1 ALiBi slopes for 2 heads`,
		one(axes + `,"empty_rows":7`):                                                                     `"s": 7 empty rows of 6`,
		one(axes + `,"empty_rows":-1`):                                                                    `"s": -1 empty rows of 6`,
		one(axes + `,"declaration":"` + strings.Repeat("x", 129) + `"`):                                   `"s": the hash of its declaration is too long`,
		one(axes + `,"allowed":{}`):                                                                       `"s": allowed cells of [0, 0, 0] do not fit 4 columns`,
		one(axes + `,"allowed":{"heads":1,"rows":1,"cols":4}`):                                            `"s": allowed cells of [1, 1, 4] in 0 words of 64 bits`,
		one(axes + `,"allowed":{"heads":2147483648,"rows":2147483648,"cols":4,"bits":[1]}`):               `"s": allowed cells of [2147483648, 2147483648, 4] do not fit 4 columns`,
		one(axes + `,"allowed":{"heads":1,"rows":1,"cols":4,"first_row":9223372036854775807,"bits":[1]}`): `"s": allowed cells from head 0 and row 9223372036854775807 on`,
	} {
		if _, err := decode(text, scores); err == nil || err.Error() != want {
			t.Errorf("%s\ngot  %v\nwant %s", text, err, want)
		}
	}
	if _, err := decode(`{"version":1,"tensors":{"":{"axes":["a"],"made_by":[]}}}`, []tensorfile.SafeArray{{Name: "", Shape: []int{1}}}); err == nil {
		t.Error("a tensor without a name")
	}
	if _, err := decode(`{"version":1,"tensors":{}}`, nil); err == nil {
		t.Error("a file of nothing")
	}
}

// one is the description of a tensor "s".
func one(text string) string { return fmt.Sprintf(`{"version":1,"tensors":{"s":{%s}}}`, text) }

// Whatever a description says, it is refused in one line, or what it says of a tensor can be used, and is the same once it is saved again.
func FuzzDecode(f *testing.F) {
	f.Add(one(`"axes":["heads","query","key"],"quantity":"scores","mask":{"causal":true,"diagonal":1,"window":2,"documents":[3,1]},"softcap":5,"slopes":[1,-0.5],"made_by":["1 x","2 y"]`), 2, 3, 4)
	f.Add(one(`"axes":["heads","query","key"],"quantity":"probabilities","allowed":{"heads":1,"rows":3,"cols":4,"first_head":1,"first_row":2,"bits":[4095]},"empty_rows":1,"declaration":"ab","made_by":null`), 2, 3, 4)
	f.Fuzz(func(t *testing.T, text string, h, s, cols int) {
		shape := []int{h, s, cols}
		if n, err := tensorfile.Elements(shape); err != nil || n > 1<<12 {
			return
		}
		arrays := []tensorfile.SafeArray{{Name: "s", Shape: shape}}
		all, err := decode(text, arrays)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\r") {
				t.Errorf("error of more than one line: %q", err)
			}
			return
		}
		m := all["s"].meta
		for head := range h {
			for row := range s {
				for col := range cols {
					m.Sees(head, row, col)
				}
			}
		}
		m.Mask.Empty(s, cols)
		e := entryOf(store.Named{Operand: store.Operand{Meta: m}, Name: "s", Hash: all["s"].Declaration}, all["s"].Made)
		said, err := encode(map[string]entry{"s": e})
		if err != nil {
			t.Fatal(err)
		}
		header, err := unsealed(said, arrays)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "x")
		if err := os.WriteFile(path, append(header, make([]byte, 4*h*s*cols)...), 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := tensorfile.OpenSafe(path)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		again, err := decode(file.Metadata[keyTensors], file.Arrays)
		if err != nil || !reflect.DeepEqual(again["s"].meta, m) {
			t.Errorf("%+v, want %+v: %v", again["s"].meta, m, err)
		}
	})
}
