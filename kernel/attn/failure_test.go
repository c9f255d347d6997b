package attn_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/cudaops/host"
	"github.com/attnb/attnb/kernel/resident"
	"github.com/attnb/attnb/kernel/wire"
)

// messages are what each failing cell says, word for word. "DIR" stands for the cell's working directory.
var messages = []struct{ cell, want string }{
	{"odd rotary", `RoPE: rotary dims 7 is odd (x: "q" [heads 4, seq 9, dim 16])`},
	{"rotary too wide", `RoPE: rotary dims 18 is more than the head dim 16 (x: [heads 4, seq 9, dim 16])`},
	{"offset", `RoPE: offset 9223372036854775807 with 9 rows: |position| must be below 134217728 (x: [heads 1, seq 9, dim 4])`},
	{"positions", `RoPE: 2 positions for 9 rows (x: [heads 1, seq 9, dim 4])`},
	{"split", `SplitHeads: hidden 190 does not divide by 4 heads + 2 * 4 KV heads (x: "rows" [seq 9, hidden 190])`},
	{"split heads", `SplitHeads: 0 heads and 0 KV heads: both must be at least 1 (x: [seq 2, hidden 6])`},
	{"scores dims", `Scores: head dims 4 and 6 differ (q: "q" [heads 2, seq 3, dim 4], k: [heads 2, seq 3, dim 6])`},
	{"scores heads", `Scores: 3 heads are not a multiple of 2 KV heads (q: [heads 3, seq 3, dim 4], k: [heads 2, seq 3, dim 4])`},
	{"prefill long", `Prefill: 5 queries against 3 keys: a causal mask needs at least as many keys (q: [heads 2, seq 5, dim 4], k: [heads 2, seq 3, dim 4])`},
	{"decode rows", `Decode: 2 query rows a head, must be 1 (q: [heads 2, seq 2, dim 4])`},
	{"decode diagonal", `Decode: one query sees the whole cache: a diagonal has no place here, cut the cache with Rows (q: [heads 2, seq 1, dim 4], k: [heads 2, seq 3, dim 4], v: [heads 2, seq 3, dim 4])`},
	{"append", `AppendKV: heads and head dim must be equal (cache: "cache" [heads 2, seq 3, dim 4], rows: [heads 2, seq 1, dim 5])`},
	{"add", `Add: shapes differ (a: [seq 2, hidden 3], b: [seq 3, hidden 2])`},
	{"add axes", `Add: axes differ (a: [heads 2, seq 2, dim 4], b: [seq 2, heads 2, dim 4])`},
	{"linear", `Linear: rows of 3 elements, weights for 4 (x: [seq 2, hidden 3], w: [out 5, in 4])`},
	{"embedding", `Embedding: token 1 is 3, must be 0 to 2 (table: "table" [token 3, hidden 4])`},
	{"embedding of a vector", `Embedding: a table has 2 dimensions: [tokens, hidden] (table: [hidden 4])`},
	{"embedding of nothing", `Embedding: no tokens (table: [token 3, hidden 4])`},
	{"layernorm weight", `LayerNorm: the weight must be [1 1 4] (x: [seq 3, hidden 4], w: "w" [hidden 3])`},
	{"layernorm matrix", `LayerNorm: weights and biases of a norm have 1 dimension (w: [seq 1, hidden 4])`},
	{"rmsnorm eps", `RMSNorm: eps is 0, must be a positive number that f32 holds (x: [seq 3, hidden 4])`},
	{"rmsnorm bias", `RMSNorm: one weight at most`},
	{"multiply", `Multiply: shapes differ (a: [seq 3, hidden 4], b: [seq 4, hidden 3])`},
	{"no model", `OpenModel: ./nowhere: no such directory`},
	{"no cached model", `OpenModel: no directory "org/name": DIR/hub: no model org/name in this cache, and nothing is fetched: no such file`},
	{"no cached revision", `OpenModel: DIR/hub: no model org/name in this cache, and nothing is fetched: no such file`},
	{"no tensor", `Load: DIR/model/model.safetensors: no array "h.0.attn.masked_bias": it holds h.0.attn.c_attn.bias, h.0.attn.c_attn.weight, h.0.attn.c_proj.bias, h.0.attn.c_proj.weight, h.0.ln_1.bias, h.0.ln_1.weight, wte.weight`},
	{"no such projection", `Weight: the model has no such projection: see Fused`},
	{"context", `Context: probabilities of 4 keys, values of 3 (p: [heads 2, seq 3, dim 4], v: [heads 2, seq 3, dim 4])`},
	{"head", `Head: head 4 is not within 0 to 3 (x: "q" [heads 4, seq 9, dim 16])`},
	{"head of a matrix", `Head: has no axis "heads" (x: [query 3, key 3])`},
	{"rows", `Rows: seq 8 to 10 are not within 0 to 9 (x: [heads 4, seq 9, dim 16])`},
	{"batch first", `RoPE: 4 dimensions are too many: pick one with Batch(i) (x: [batch 2, heads 1, seq 3, dim 4])`},
	{"values", `FromSlice: 3 values for [seq 2, dim 2], which has 4`},
	{"axes", `FromSlice: 2 axes (seq dim) for shape [3]`},
	{"empty", `FromSlice: shape [0] is empty`},
	{"too large for f32", `FromSlice: value 1e+300 of element 1 does not fit f32`},
	{"huge", `FromSlice: shape [1099511627776 1099511627776] has more than 4294967296 elements`},
	{"unknown", `Get: no tensor is named "keptt": did you mean "kept"?`},
	{"freed", `Softmax: the tensor [heads 1, seq 2, dim 4] was freed`},
	{"freed twice", `Free: the tensor [heads 1, seq 2, dim 4] was freed`},
	{"never made", `Heatmap: not a tensor: it was declared but never made`},
	{"not npy", `Load: DIR/notes.txt: neither a .npy, a .npz nor a .safetensors file`},
	{"no file", `Load: DIR/missing.npy: no such file`},
	{"no array", `Load: DIR/layer.npz: no array "qk": it holds ctx, ctx_decode, k, k_all, k_far, k_pre, meta, probs, probs_decode_last, probs_far, q, q_decode and 6 more`},
	{"integers", `Load: DIR/ints.npy: dtype "<i8", only f16, f32 and f64 can be loaded`},
	{"short file", `Load: DIR/short.npy: 4 bytes of data, but shape [1000 1000] of f32 needs 4000000`},
	{"a directory", `Load: /: a directory`},
	{"check a leaf", `Check: nothing to replay: the tensor was brought, not computed (x: "leaf" [heads 1, seq 2, dim 4])`},
	{"check what was freed", `Check: Softmax cannot be replayed: its leaf "gone" [heads 1, seq 2, dim 4] was freed`},
	{"tokens", `Heatmap: 3 tokens fit none of the axes query, key and seq (x: [heads 1, seq 2, dim 4])`},
	{"explore parameter", `Explore: no parameter is called "ofset": did you mean "offset"? (x: [heads 1, seq 2, dim 4])`},
	{"dial elsewhere", `the control offset belongs to Explore`},
	{"require", `Require: FAIL: error/bound 17, 1 of 4 cells`},
	{"compare shapes", `Compare: shapes differ (mine: "q" [heads 2, seq 3, dim 4], expected: [heads 2, seq 4, dim 3])`},
	{"within", `Within is an option of Compare alone`},
	{"map window", `Map: queries 4 to 4 are none (q: "q" [heads 2, seq 9, dim 4], k: [heads 1, seq 20, dim 4])`},
	{"map outside", `Map: keys 4 to 21 are not within 0 to 20 (q: [heads 2, seq 9, dim 4], k: [heads 1, seq 20, dim 4])`},
	{"map head", `Map: head 2 is not within 0 to 1 (q: [heads 2, seq 9, dim 4], k: [heads 1, seq 20, dim 4])`},
	{"map size", `Size: must be at least 1`},
	{"map large", `Map: a size of 4096 cells, must be 1 to 2048 (q: [heads 2, seq 9, dim 4], k: [heads 1, seq 20, dim 4])`},
	{"map log", `Map: a logarithmic scale is for probabilities, which these values are not (q: [heads 2, seq 9, dim 4], k: [heads 1, seq 20, dim 4])`},
	{"map of values", `Map: the matrix does not hold scores (x: [heads 2, seq 9, dim 4])`},
	{"map option elsewhere", `pools, sizes, heads and windows are options of Map`},
	{"log elsewhere", `Log is an option of Map, Heatmap, Interactive and Decoding`},
	{"layers of none", `Layers: 0 tensors, it takes 1 to 1024`},
	{"layers of scores", `Layers: scores are no probabilities: take their Softmax (layer 0: [heads 1, query 2, key 2])`},
	{"trace without a head", `Trace: one query of one head: pick it with OnlyHead(i) (scores: [heads 2, query 2, key 2])`},
	{"trace query", `Trace: query 2 is not within 0 to 1 (scores: [heads 1, query 2, key 2])`},
	{"trace of a pool", `pools, sizes, heads and windows are options of Map`},
	{"decoding heads", `Decoding: head 2 is not within 0 to 1 (step 0: [heads 2, seq 1, dim 4])`},
	{"timeline of a row", `Timeline: has no rows, and so no slots (cache: [dim 4])`},
	{"writes", `Timeline: step 0 has 1 positions for 2 slots`},
	{"phasors", `Phasors: rotary dims 7: must be even, 2 to 4096`},
	{"statistics of scores", `Heatmap: statistics are of probabilities, which scores are not: take their Softmax (x: [heads 1, query 2, key 2])`},
	{"statistics elsewhere", `Statistics is an option of Heatmap and Interactive`},
	{"ulp elsewhere", `Differences and ULP are options of Check and Compare`},
	{"enlarge elsewhere", `Enlarge is an option of Heatmap`},
	{"sink share elsewhere", `Entropy, Distance and SinkShare are options of Layers`},
	{"beside elsewhere", `Beside is an option of Phasors`},
	{"tokens elsewhere", `Tokens label nothing in this picture`},
	{"layout of nothing", `FindLayout: too little data: needs at least one of q, k, v, context or merged to compare with (rows: "rows" [seq 3, hidden 12])`},
	{"layout heads", `FindLayout: hidden 13 does not divide by 2 heads + 2 * 2 KV heads (rows: [seq 3, hidden 13])`},
	{"rope of zeros", `FindRoPE: too little data: before is 0 everywhere; needs at least one row that is not (before: [heads 1, seq 2, dim 4], after: [heads 1, seq 2, dim 4])`},
	{"rope shapes", `FindRoPE: shapes do not fit: before [1, 2, 4] and after [1, 3, 4] differ (before: [heads 1, seq 2, dim 4], after: [heads 1, seq 3, dim 4])`},
	{"rope odd", `FindRoPE: bad argument: rotary 3 is not an even number from 2 to the head dim 4 (before: [heads 1, seq 2, dim 4], after: [heads 1, seq 2, dim 4])`},
	{"mask of a bias", `FindMask: shapes do not fit: bias [2, 2, 2] and probabilities [1, 2, 2]: columns, and rows and heads or 1 (q: [heads 1, seq 2, dim 4], k: [heads 1, seq 2, dim 4], p: [heads 1, seq 2, dim 2], bias: [heads 2, seq 2, dim 2])`},
	{"mask without p", `FindMask: needs p`},
	{"mask padding", `FindMask: bad argument: padding of 1 and 2 columns does not fit 2 (q: [heads 1, seq 2, dim 4], k: [heads 1, seq 2, dim 4], p: [heads 1, seq 2, dim 2])`},
	{"mask documents", `FindMask: bad argument: documents of [1] do not fill 2 columns (q: [heads 1, seq 2, dim 4], k: [heads 1, seq 2, dim 4], p: [heads 1, seq 2, dim 2])`},
	{"precision", `RowsSum: no precision is called "fp8": f32, f64, tf32, fp16 or bf16 (p: [heads 1, seq 2, dim 4])`},
	{"probe shape", `Probe: shapes do not fit: the result [2, 11, 16] and q [4, 7, 16] differ (result: [heads 2, seq 11, dim 16])`},
	{"probe size", `Probe: 3 heads are not a multiple of 2 KV heads`},
	{"no chunks", `PrefillIsDecode: too little data: 1 rows and 11 keys; needs at least two rows, and a key for each`},
	{"cache dims", `CheckCache: shapes do not fit: rows [1, 2, 4] and the cache [1, 2, 6] differ in heads or dim (rows: [heads 1, seq 2, dim 4], cache: [heads 1, seq 2, dim 6])`},
	{"writes of nothing", `CheckWrites: too little data: needs at least one write`},
	{"audit a leaf", `Audit: nothing to replay: the tensor was brought, not computed (out: "leaf" [heads 1, seq 2, dim 4])`},
	{"audit elsewhere", `Audit: Stage: "other" [heads 1, seq 2, dim 4] is no stage of what is audited`},
	{"ladder of values", `Ladder: needs a tensor of Scores, Context, Prefill or Decode: a score or an element of the context (x: [heads 1, seq 2, dim 4])`},
	{"ladder outside", `Ladder: head 0, row 2, column 0 is no cell of it (x: [heads 1, query 2, key 2])`},
	{"compare within", `Compare: Within(-1): must be 0 or more, and finite (mine: [heads 2, seq 3, dim 4], expected: [heads 2, seq 3, dim 4])`},
}

// lines finds the line on which each failing cell calls the package.
func lines(t *testing.T) map[string]int {
	t.Helper()
	src, err := os.ReadFile(filepath.Join(here, "testdata/cell/failures.go"))
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]int{}
	for i, line := range strings.Split(string(src), "\n") {
		if m := regexp.MustCompile(`^var _ = fails\("(.*?)"`).FindStringSubmatch(line); m != nil {
			at[m[1]] = i + 1
		}
	}
	return at
}

// files are what the failing cells find in their directory.
func (k *kernel) files() {
	header := func(descr, shape string) string {
		text := "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }"
		text += strings.Repeat(" ", 117-len(text)) + "\n"
		return "\x93NUMPY\x01\x00\x76\x00" + text
	}
	npz, err := os.ReadFile(golden)
	if err != nil {
		k.t.Fatal(err)
	}
	for name, content := range map[string]string{
		"notes.txt": "just text\n",
		"layer.npz": string(npz),
		"ints.npy":  header("<i8", "(1,)") + strings.Repeat("\x00", 8),
		"short.npy": header("<f4", "(1000, 1000)") + "\x00\x00\x00\x00",
	} {
		if err := os.WriteFile(filepath.Join(k.dir, name), []byte(content), 0o600); err != nil {
			k.t.Fatal(err)
		}
	}
}

// forgetAllBut takes all names but one away.
func (k *kernel) forgetAllBut(name string) {
	k.t.Helper()
	a, err := k.conn.Do(wire.Request{Kind: wire.KindList})
	if err != nil {
		k.t.Fatal(err)
	}
	for _, x := range a.Tensors {
		if x.Name != name {
			if _, err := k.conn.Do(wire.Request{Kind: wire.KindFree, Name: x.Name}); err != nil {
				k.t.Fatal(err)
			}
		}
	}
}

// settle waits until the device process has noticed that the cell is gone, and holds want bytes.
func (k *kernel) settle(want int64) {
	k.t.Helper()
	var n int64
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if n = k.device.InUse(); n == want {
			return
		}
	}
	k.t.Errorf("%d bytes in use, want %d", n, want)
}

// Each mistake is one line at the line of the cell that made it, and costs nothing that is resident.
func TestFailures(t *testing.T) {
	k := newKernel(t)
	k.files()
	gpt2Files(t, filepath.Join(k.dir, "model"))
	t.Setenv("HF_HUB_CACHE", filepath.Join(k.dir, "hub"))
	kept, err := k.conn.Upload(wire.Request{Kind: wire.KindUpload, Shape: []int{2, 2}, Axes: []string{"seq", "dim"}}, []float32{1, 2, 3, 4})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.conn.Do(wire.Request{Kind: wire.KindName, IDs: []int{kept.Tensors[0].ID}, Name: "kept"}); err != nil {
		t.Fatal(err)
	}
	at := lines(t)
	said := map[string]bool{}
	for _, c := range messages {
		said[c.cell] = true
		t.Run(c.cell, func(t *testing.T) {
			r := k.run(c.cell)
			want := strings.ReplaceAll(c.want, "DIR", k.dir)
			if r.fail != want {
				t.Errorf("fail marker\n %s\nwant\n %s", r.fail, want)
			}
			m := regexp.MustCompile(`^(\S+)/failures\.go:(\d+): (.*)\n$`).FindStringSubmatch(r.stderr)
			if m == nil || m[3] != want {
				t.Fatalf("stderr %q, want one line with place and %q", r.stderr, want)
			}
			if m[2] != strconv.Itoa(at[c.cell]) {
				t.Errorf("at line %s, want %d", m[2], at[c.cell])
			}
			if r.exit != 1 || r.out != "" || len(r.displays) != 0 {
				t.Errorf("exit %d, printed %q", r.exit, r.out)
			}
			data, err := k.conn.Download(wire.Request{Kind: wire.KindDownload, IDs: []int{kept.Tensors[0].ID}})
			if err != nil || !bytes.Equal(wire.FloatBytes(data), wire.FloatBytes([]float32{1, 2, 3, 4})) {
				t.Errorf("the resident tensor is now %v, %v", data, err)
			}
			k.forgetAllBut("kept")
			k.settle(16)
		})
	}
	for cell := range at {
		if !said[cell] {
			t.Errorf("no message is expected of %q", cell)
		}
	}
}

// A cell with no device process says so.
func TestNoDeviceProcess(t *testing.T) {
	k := newKernel(t)
	const notebook = "no device process: ATTNB_SOCKET is not set; package attn works in notebooks of the attnb kernel"
	if r := k.run("load", wire.EnvSocket+"="); r.exit != 1 || r.fail != notebook || !strings.HasSuffix(r.stderr, ": "+notebook+"\n") {
		t.Errorf("no socket: exit %d, fail %q, stderr %q", r.exit, r.fail, r.stderr)
	}
	gone := filepath.Join(k.dir, "no kernel", "gone")
	want := "no device process at " + gone + ": connect: no such file or directory"
	if r := k.run("load", wire.EnvSocket+"="+gone); r.exit != 1 || r.fail != want {
		t.Errorf("dead socket: exit %d, fail %q, want %q", r.exit, r.fail, want)
	}
	// Outside of a kernel there is no nonce, and so no marker.
	if r := k.run("load", wire.EnvSocket+"=", wire.EnvNonce+"="); r.exit != 1 || r.fail != "" || r.out != "" || !strings.HasSuffix(r.stderr, notebook+"\n") {
		t.Errorf("outside: exit %d, printed %q, stderr %q", r.exit, r.out, r.stderr)
	}
}

// A cell that meets a device process on its way up, or none yet, waits for it.
func TestLateDeviceProcess(t *testing.T) {
	dir, err := os.MkdirTemp("", "attnb")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "s")
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	d := cudaops.NewDevice(host.New(host.Options{}))
	time.AfterFunc(300*time.Millisecond, func() { served <- resident.Serve(ctx, resident.Options{Socket: socket, Device: d}) })
	k := newKernel(t)
	if r := k.run("load", wire.EnvSocket+"="+socket); r.exit != 0 || r.out != "loaded \"qkv\" [seq 9, hidden 192]\n" {
		t.Errorf("exit %d, printed %q, %s", r.exit, r.out, r.stderr)
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
}
