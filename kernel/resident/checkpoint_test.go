package resident

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/attnb/attnb/cudaops/host"
	"github.com/attnb/attnb/kernel/wire"
)

// bits are values that only a copy of their bits keeps: quiet and signalling NaNs with a payload, zeros of both signs, subnormal numbers.
var bits = []uint32{0x7fc00001, 0xffc12345, 0x7f800001, 0xffa00123, 0x80000000, 0, 1, 0x80000001, 0x7f800000, 0xff800000, 0x7f7fffff, 0x3f800001}

func bitsOf(values []float32) []uint32 {
	out := make([]uint32, len(values))
	for i, v := range values {
		out[i] = math.Float32bits(v)
	}
	return out
}

func (c caller) save(path string, names ...string) wire.Answer {
	c.t.Helper()
	return c.do(wire.Request{Kind: wire.KindSave, Path: path, Names: names})
}

func (c caller) restore(path string, names ...string) wire.Answer {
	c.t.Helper()
	return c.do(wire.Request{Kind: wire.KindRestore, Path: path, Names: names})
}

// refused is the message of a request that fails.
func (c caller) refused(r wire.Request) string {
	c.t.Helper()
	a, err := c.Do(r)
	if err == nil {
		c.t.Errorf("%+v: no error, %+v", r, a)
		return ""
	}
	return err.Error()
}

// many names tensors of every kind: leaves with any bits, results, a view, scores and probabilities under masks and variants.
func (c caller) many() map[string]wire.Tensor {
	c.t.Helper()
	values := make([]float32, len(bits))
	for i, b := range bits {
		values[i] = math.Float32frombits(b)
	}
	cells := make([]float32, 5*7)
	for i := range cells {
		cells[i] = float32(i % 3)
	}
	q, k := c.random(1, hsd, 2, 5, 8), c.random(2, hsd, 2, 7, 8)
	scores := c.run1(wire.OpScores, wire.Params{Mask: wire.MaskDiagonal, Diagonal: -1, Window: 3, PadRight: 1, Documents: []int{3, 4}, Softcap: 5, ALiBi: true}, q, k)
	allowed := c.upload([]string{"query", "key"}, []int{5, 7}, cells)
	plain := c.run1(wire.OpScores, causal, q, k)
	all := map[string]wire.Tensor{
		"bits": c.upload(shd, []int{2, 2, 3}, values), "q": q, "a view": c.run1(wire.OpRows, wire.Params{Index: 1, Count: 3}, q),
		"swapped": c.run1(wire.OpSwap, wire.Params{}, q), "scores": scores, "scores/head": c.run1(wire.OpIndex, wire.Params{Axis: "heads", Index: 1}, scores),
		"wahrscheinlich \u00fc <p> \"1\"": c.run1(wire.OpSoftmax, wire.Params{}, scores),
		"allowed":                         c.run1(wire.OpSoftmax, wire.Params{Extras: []string{wire.ExtraAllowed}}, plain, allowed),
		"sha256":                          c.run1(wire.OpPrefill, causal, q, k, k), "rows": c.upload([]string{"dim"}, []int{3}, []float32{1, 2, 3}),
	}
	for name, x := range all {
		c.name(x, name)
	}
	return all
}

// What comes back is what was saved: values bit by bit, shapes and axes, and what pictures and later ops take from a tensor besides.
func TestCheckpoint(t *testing.T) {
	file := filepath.Join(t.TempDir(), "run.safetensors")
	before, after := onHost(t), onHost(t)
	c, d := before.dial(), after.dial()
	defer c.Close()
	defer d.Close()
	all := c.many()
	c.do(wire.Request{Kind: wire.KindName, Name: "rows", Hash: "of its declaration", IDs: []int{all["rows"].ID}})
	saved, total := c.save(file), 0
	for _, x := range all {
		total += 4 * len(c.download(x))
	}
	if len(saved.Tensors) != len(all) || saved.Number != total {
		t.Errorf("saved %d tensors, %d bytes; want %d, %d", len(saved.Tensors), saved.Number, len(all), total)
	}
	if restored := d.restore(file); len(restored.Tensors) != len(all) {
		t.Errorf("restored %d tensors, want %d", len(restored.Tensors), len(all))
	}
	for name, x := range all {
		got := d.get(name)
		if a, b := bitsOf(c.download(x)), bitsOf(d.download(got)); !slices.Equal(a, b) {
			t.Errorf("%q: %x, want %x", name, b, a)
		}
		if !slices.Equal(got.Shape, x.Shape) || !slices.Equal(got.Axes, x.Axes) || got.Empty != x.Empty || got.Made != "restored from run.safetensors" {
			t.Errorf("%+v, want %+v", got, x)
		}
		if !bytes.Equal(c.png(x), d.png(got)) {
			t.Errorf("%q: its picture is another", name)
		}
	}
	if x := all["scores"]; x.Empty != 0 || c.run1(wire.OpSoftmax, wire.Params{}, x).Empty == 0 {
		t.Error("the mask of the scores leaves no row empty: this proves less than it could")
	}
	for _, name := range []string{"scores", "scores/head"} {
		want := c.run1(wire.OpSoftmax, wire.Params{}, c.get(name))
		got := d.run1(wire.OpSoftmax, wire.Params{}, d.get(name))
		if !slices.Equal(bitsOf(c.download(want)), bitsOf(d.download(got))) || got.Empty != want.Empty {
			t.Errorf("the softmax of %q is another", name)
		}
		// A check of what is made of it begins with what was restored.
		if a := d.check(got); !a.Verdict.Pass || !strings.Contains(a.Text, "restored from run.safetensors") {
			t.Errorf("%+v\n%s", a.Verdict, a.Text)
		}
	}
	want := `Check: nothing to replay: the tensor was restored from run.safetensors, where its values are kept and not the tensors that they were ` +
		`computed from (x: "sha256" [heads 2, seq 5, dim 8])`
	if got := d.refused(wire.Request{Kind: wire.KindCheck, IDs: []int{d.get("sha256").ID}}); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := d.refused(wire.Request{Kind: wire.KindCheck, IDs: []int{d.get("q").ID}}); !strings.Contains(got, "was brought, not computed") {
		t.Error(got)
	}
	if a := d.compare(d.run1(wire.OpPrefill, wire.Params{}, d.get("q"), d.get("a view"), d.get("a view")), d.get("q"), 0); !strings.Contains(a.Text, `"q" rounded to f32`) {
		t.Errorf("what was brought is rounded:\n%s", a.Text)
	}
	// Once finds what the same declaration made.
	if a := d.do(wire.Request{Kind: wire.KindOnce, Name: "rows", Hash: "of its declaration"}); len(a.Tensors) != 1 {
		t.Error("Once makes a restored tensor again")
	}
	if a := d.do(wire.Request{Kind: wire.KindOnce, Name: "rows", Hash: "of another"}); len(a.Tensors) != 0 {
		t.Error("Once takes a restored tensor of another declaration")
	}
	// A file of restored tensors holds what the first did.
	again := filepath.Join(t.TempDir(), "again.safetensors")
	d.save(again, "sha256", "bits", "sha256")
	text, err := os.ReadFile(again)
	if err != nil || !bytes.Contains(text, []byte("Prefill(")) {
		t.Errorf("the steps of a restored tensor are gone: %v", err)
	}
	c.do(wire.Request{Kind: wire.KindFree, Name: "bits"})
	if a := c.restore(again, "bits"); len(a.Tensors) != 1 || !slices.Equal(bitsOf(c.download(a.Tensors[0])), bits) {
		t.Errorf("%+v", a.Tensors)
	}
	// A name is enough to hold what was restored.
	e := after.dial()
	e.do(wire.Request{Kind: wire.KindFree, Name: "bits"})
	e.restore(again, "bits")
	e.Close()
	if x := d.get("bits"); !slices.Equal(bitsOf(d.download(x)), bits) {
		t.Error("it went with its connection")
	}
}

// held is what a process holds, in words: names, and what is in use.
func held(p *process, c caller) string {
	var names []string
	for _, x := range c.do(wire.Request{Kind: wire.KindList}).Tensors {
		names = append(names, x.Name)
	}
	slices.Sort(names)
	return fmt.Sprintf("%q, %d bytes", names, p.d.InUse())
}

// only checks that a directory holds these files and no other.
func only(t *testing.T, dir string, want ...string) {
	t.Helper()
	var got []string
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		got = nil
		for _, e := range entries {
			got = append(got, e.Name())
		}
		if slices.Equal(got, want) {
			return
		}
	}
	t.Errorf("%s holds %q, want %q", dir, got, want)
}

// Whatever is wrong with a file or a name is said in one line, and everything stays as it was.
func TestCheckpointRefuses(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	p := onHost(t)
	c := p.dial()
	defer c.Close()
	empty := c.refused(wire.Request{Kind: wire.KindSave, Path: at("x")})
	c.many()
	c.save(at("good"), "q", "scores", "bits")
	whole, err := os.ReadFile(at("good"))
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string, content []byte) string {
		if err := os.WriteFile(at(name), content, 0o600); err != nil {
			t.Fatal(err)
		}
		return at(name)
	}
	write("theirs", []byte("weights"))
	for _, mine := range []error{os.Mkdir(at("dir"), 0o700), os.Symlink(at("nowhere"), at("link")), syscall.Mkfifo(at("pipe"), 0o600)} {
		if mine != nil {
			t.Fatal(mine)
		}
	}
	for _, name := range []string{"q", "scores", "bits"} {
		c.do(wire.Request{Kind: wire.KindFree, Name: name})
	}
	before := held(p, c)
	for _, r := range []struct {
		what string
		r    wire.Request
		want string
	}{
		{"an unknown name", wire.Request{Kind: wire.KindSave, Path: at("x"), Names: []string{"rows", "allowd"}}, `Save: no tensor is named "allowd": did you mean "allowed"?`},
		{"a relative path", wire.Request{Kind: wire.KindSave, Path: "x"}, "Save: x: the path is not absolute"},
		{"no directory", wire.Request{Kind: wire.KindSave, Path: at("no/x")}, "Save: " + at("no/x") + ": no such directory"},
		{"a file for a directory", wire.Request{Kind: wire.KindSave, Path: at("theirs/x")}, "Save: " + at("theirs/x") + ": not a directory"},
		{"a directory", wire.Request{Kind: wire.KindSave, Path: at("dir")}, "Save: " + at("dir") + ": is there already and is no checkpoint: remove it first, or save to another file"},
		{"another's file", wire.Request{Kind: wire.KindSave, Path: at("theirs")}, "Save: " + at("theirs") + ": is there already and is no checkpoint: remove it first, or save to another file"},
		{"a pipe", wire.Request{Kind: wire.KindSave, Path: at("pipe")}, "Save: " + at("pipe") + ": is there already and is no checkpoint: remove it first, or save to another file"},
		{"a link to nothing", wire.Request{Kind: wire.KindSave, Path: at("link")}, "Save: " + at("link") + ": a link to nothing"},

		{"no file", wire.Request{Kind: wire.KindRestore, Path: at("x")}, "Restore: " + at("x") + ": no such file"},
		{"a directory", wire.Request{Kind: wire.KindRestore, Path: at("dir")}, "Restore: " + at("dir") + ": a directory"},
		{"another's file", wire.Request{Kind: wire.KindRestore, Path: at("theirs")}, "Restore: " + at("theirs") + ": not a .safetensors file"},
		{"a name that it does not hold", wire.Request{Kind: wire.KindRestore, Path: at("good"), Names: []string{"q", "k"}}, `Restore: good holds no "k", but bits, q, scores`},
		{"cut", wire.Request{Kind: wire.KindRestore, Path: write("cut", whole[:len(whole)-1])}, ""},
		{"cut in its header", wire.Request{Kind: wire.KindRestore, Path: write("short", whole[:100])}, "Restore: " + at("short") + ": the file ends inside its header"},
		{"more behind it", wire.Request{Kind: wire.KindRestore, Path: write("long", append(slices.Clone(whole), 0))},
			"Restore: " + at("long") + ": cut or changed since it was saved: its SHA-256 is another"},
		{"another program's", wire.Request{Kind: wire.KindRestore, Path: write("other", []byte("\x48\x00\x00\x00\x00\x00\x00\x00"+
			`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}                  `+"abcd"))},
			"Restore: " + at("other") + ": no checkpoint: attn.Load reads arrays of such a file"},
	} {
		got := c.refused(r.r)
		if got != r.want && r.want != "" || strings.ContainsAny(got, "\n\r") {
			t.Errorf("%s:\ngot  %s\nwant %s", r.what, got, r.want)
		}
		if now := held(p, c); now != before {
			t.Errorf("%s: holds %s, held %s", r.what, now, before)
		}
	}
	if empty != "Save: no tensor has a name" {
		t.Error(empty)
	}
	// A byte that changed, wherever it is.
	for i := 0; i < len(whole); i += 1 + i/97 {
		damaged := slices.Clone(whole)
		damaged[i] ^= 1 << (i % 8)
		got := c.refused(wire.Request{Kind: wire.KindRestore, Path: write("damaged", damaged)})
		if now := held(p, c); now != before || !strings.HasPrefix(got, "Restore: ") || strings.ContainsAny(got, "\n\r") {
			t.Fatalf("byte %d: %s; holds %s, held %s", i, got, now, before)
		}
	}
	only(t, dir, "cut", "damaged", "dir", "good", "link", "long", "other", "pipe", "short", "theirs")
	if theirs, err := os.ReadFile(at("theirs")); string(theirs) != "weights" {
		t.Errorf("%q, %v", theirs, err)
	}
	// One name in use is enough, and says which.
	c.restore(at("good"), "q")
	before = held(p, c)
	if got, want := c.refused(wire.Request{Kind: wire.KindRestore, Path: at("good")}), `Restore: there is a tensor "q": let go of it first, or name what to restore`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if now := held(p, c); now != before {
		t.Errorf("holds %s, held %s", now, before)
	}
	c.restore(at("good"), "scores", "bits")
	if got, want := c.refused(wire.Request{Kind: wire.KindRestore, Path: at("good")}), `Restore: there are tensors "bits", "q", "scores": let go of them first, or name what to restore`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	// A checkpoint is replaced, by way of a link too, and keeps its mode.
	if err := errors.Join(os.Chmod(at("good"), 0o640), os.Remove(at("link")), os.Symlink("good", at("link"))); err != nil {
		t.Fatal(err)
	}
	c.save(at("link"), "rows")
	info, err := os.Stat(at("good"))
	if err != nil || info.Mode() != 0o640 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if link, err := os.Readlink(at("link")); link != "good" {
		t.Errorf("%q, %v", link, err)
	}
	c.do(wire.Request{Kind: wire.KindFree, Name: "rows"})
	if a := c.restore(at("good")); len(a.Tensors) != 1 || a.Tensors[0].Name != "rows" {
		t.Errorf("%+v", a.Tensors)
	}
}

// A device with too little room takes all of a file or nothing, whichever tensor does not fit.
func TestCheckpointOutOfMemory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "run.safetensors")
	c := onHost(t).dial()
	defer c.Close()
	for i, name := range []string{"a", "b", "c"} {
		c.name(c.random(uint64(i), fused, 10, 100), name)
	}
	c.save(file)
	for _, room := range []int64{3999, 4000, 8000, 11999} {
		p := start(t, host.New(host.Options{Memory: room}))
		d := p.dial()
		got := d.refused(wire.Request{Kind: wire.KindRestore, Path: file})
		if !strings.HasPrefix(got, "Restore: out of memory: 3.9 KiB asked for, ") || !strings.Contains(got, `(values: "`) || held(p, d) != "[], 0 bytes" {
			t.Errorf("room for %d bytes: %s; holds %s", room, got, held(p, d))
		}
		if room >= 4000 {
			if a := d.restore(file, "b"); len(a.Tensors) != 1 {
				t.Errorf("%+v", a.Tensors)
			}
		}
		d.Close()
	}
}

// until asks for the status until it is so, or for as long as that.
func (c caller) until(limit time.Duration, so func(wire.Status) bool) {
	c.t.Helper()
	for end := time.Now().Add(limit); time.Now().Before(end); {
		status, err := c.Status()
		if err != nil {
			c.t.Fatal(err)
		}
		if so(status) {
			return
		}
	}
}

// An interrupt ends what is saved and what is restored; so does the end of the client. No file is left, and no tensor.
func TestCheckpointInterrupted(t *testing.T) {
	dir := t.TempDir()
	p := onHost(t)
	c, other := p.dial(), p.dial()
	defer other.Close()
	const rows = 20000
	c.name(c.upload(fused, []int{rows, 1000}, make([]float32, rows*1000)), "x")
	file := filepath.Join(dir, "run.safetensors")
	c.save(file)
	interrupted := func(r wire.Request, want string) {
		t.Helper()
		for range 20 { // it may be done before it is seen
			ended := make(chan error, 1)
			go func() {
				_, err := c.Do(r)
				ended <- err
			}()
			other.until(time.Second, func(s wire.Status) bool { return s.Running != "" })
			if err := other.Interrupt(); err != nil {
				t.Fatal(err)
			}
			if err := <-ended; err != nil {
				if err.Error() != want {
					t.Errorf("%v, want %s", err, want)
				}
				return
			}
			if r.Kind == wire.KindRestore {
				c.do(wire.Request{Kind: wire.KindFree, Name: "x"})
			}
		}
		t.Errorf("%v: never interrupted", r.Kind)
	}
	interrupted(wire.Request{Kind: wire.KindSave, Path: filepath.Join(dir, "second")}, "Save: interrupted")
	_ = os.Remove(filepath.Join(dir, "second")) // of a try that was too late
	only(t, dir, "run.safetensors")
	c.do(wire.Request{Kind: wire.KindFree, Name: "x"})
	c.Close()
	p.settle(0)
	c = p.dial()
	interrupted(wire.Request{Kind: wire.KindRestore, Path: file}, "Restore: interrupted")
	c.Close()
	p.settle(0)

	// A client that goes away while it saves.
	c = p.dial()
	c.restore(file)
	leaving := p.raw()
	second := filepath.Join(dir, "second")
	if _, err := leaving.Write(append(hello(wire.Version), frame((&wire.Request{Kind: wire.KindSave, Path: second}).Encode())...)); err != nil {
		t.Fatal(err)
	}
	other.until(time.Second, func(s wire.Status) bool { return s.Running == "Save" })
	leaving.Close()
	other.until(10*time.Second, func(s wire.Status) bool { return s.Running == "" })
	if _, err := os.Stat(second); err == nil { // it was done before that was noticed
		c.do(wire.Request{Kind: wire.KindFree, Name: "x"})
		c.restore(second)
		_ = os.Remove(second)
	}
	only(t, dir, "run.safetensors")
	c.Close()
}
