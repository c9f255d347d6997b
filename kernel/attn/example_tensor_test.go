package attn_test

import (
	"fmt"
	"os"

	"github.com/attnb/attnb/kernel/attn"
)

// An array of a file that a framework wrote. A file with one array alone, a .npy, takes no second argument.
func ExampleLoad() {
	qkv := attn.Load("data/neox_layer.npz", "qkv")
	weight := attn.Load("models/induction/model.safetensors", "embed_out.weight")
	fmt.Println(qkv, weight)
	// Output:
	// [seq 9, hidden 192] [seq 121, hidden 128]
}

// Values made in Go, with the meaning of each dimension.
func ExampleFromSlice() {
	x := attn.FromSlice([]float64{1, 0, 0, 1, 1, 1}, "seq dim", 3, 2)
	fmt.Println(x)
	attn.Scores(x, x, attn.Causal).Softmax().Heatmap(attn.Tokens("the", "cat", "sat"))
	// Output:
	// [seq 3, dim 2]
	// probabilities.
	// Heatmap of 3 query x 3 key (probability).
	// From 0.248 at query 2 “sat”, key 0 “the” to 1 at query 0 “the”, key 0 “the”.
	// 3 of 9 cells masked.
}

// A tensor that an earlier cell named.
func ExampleGet() {
	q := attn.Get("q")
	fmt.Println(q)
	// Output:
	// "q" [heads 4, seq 9, dim 16]
}

// A tensor that a package-level variable holds is computed once, not in every cell.
func ExampleOnce() {
	load := func() attn.Tensor {
		fmt.Println("loading")
		return attn.Load("data/neox_layer.npz", "ctx").Axes("seq heads dim")
	}
	fmt.Println(attn.Once("expected", load))
	fmt.Println(attn.Once("expected", load))
	// Output:
	// loading
	// "expected" [seq 9, heads 4, dim 16]
	// "expected" [seq 9, heads 4, dim 16]
}

// What a restart would clear, kept in a file; and one tensor of it back, in another kernel perhaps.
func ExampleSave() {
	dir, _ := os.MkdirTemp("", "")
	defer os.RemoveAll(dir)
	attn.Get("q").Head(2).Named("q of head 2")
	attn.Save(dir+"/run.safetensors", "q of head 2", "k", "v")

	attn.Forget("q of head 2")
	fmt.Println(attn.Restore(dir+"/run.safetensors", "q of head 2"))
	attn.Forget("q of head 2")
	// Output:
	// ["q of head 2" [seq 9, dim 16]]
}

// Scores that come back still know their mask. A check of what is made of them begins with their values, and none of these is checked itself.
func ExampleRestore() {
	dir, _ := os.MkdirTemp("", "")
	defer os.RemoveAll(dir)
	attn.Scores(attn.Get("q"), attn.Get("k"), attn.Causal).Named("kept")
	attn.Save(dir+"/run.safetensors", "kept")

	attn.Forget("kept")
	kept := attn.Restore(dir + "/run.safetensors")[0]
	kept.Softmax().Check()
	attn.Forget("kept")
	// Output:
	// Check Softmax: pass
}

// What is there, and whether a name is taken.
func ExampleTensors() {
	for _, x := range attn.Tensors() {
		if x.Name() == "q" || x.Name() == "k" {
			fmt.Println(x)
		}
	}
	// Output:
	// "q" [heads 4, seq 9, dim 16]
	// "k" [heads 4, seq 9, dim 16]
}

// A name is taken away from a tensor of which only the result is wanted.
func ExampleForget() {
	attn.FromSlice([]float32{1, 2}, "dim", 2).Named("draft")
	attn.Forget("draft")
	for _, x := range attn.Tensors() {
		if x.Name() == "draft" {
			fmt.Println("still there")
		}
	}
	// Output:
}

// With a name a tensor is there in the next cell. The older tensor of that name is not, unless something came from it.
func ExampleTensor_Named() {
	attn.FromSlice([]float32{1, 2, 3}, "dim", 3).Named("bias")
	attn.FromSlice([]float32{4, 5}, "dim", 2).Named("bias")
	fmt.Println(attn.Get("bias"))
	// Output:
	// "bias" [dim 2]
}

// A tensor without a name lives until its cell ends.
func ExampleTensor_Name() {
	q := attn.Get("q")
	fmt.Printf("%q %q\n", q.Name(), q.Head(0).Name())
	// Output:
	// "q" ""
}

// The sizes that a loop in Go goes by.
func ExampleTensor_Shape() {
	shape := attn.Get("q").Shape()
	heads, rows, dim := shape[0], shape[1], shape[2]
	fmt.Println(heads, rows, dim)
	// Output:
	// 4 9 16
}

// What each dimension is decides what heads, rows and tokens are.
func ExampleTensor_AxisNames() {
	fmt.Println(attn.Get("scores").AxisNames(), attn.Get("out").Merge().AxisNames())
	// Output:
	// [heads query key] [seq hidden]
}

// A file says nothing of its axes: what Load takes for heads, rows and dims is here rows, heads and dims.
func ExampleTensor_Axes() {
	ctx := attn.Load("data/neox_layer.npz", "ctx")
	fmt.Println(ctx, "is", ctx.Axes("seq heads dim"))
	// Output:
	// [heads 9, seq 4, dim 16] is [seq 9, heads 4, dim 16]
}

// Values for arithmetic of one's own: the weight that each head gives to the first key, from the last query.
func ExampleTensor_Download() {
	p := attn.Get("p").Rows(8, 9).Download() // [heads 4, query 1, key 9]
	for head := range 4 {
		fmt.Printf("head %d: %.3f\n", head, p[head*9])
	}
	// Output:
	// head 0: 0.002
	// head 1: 0.001
	// head 2: 0.079
	// head 3: 0.017
}

// A tensor prints as its name, axes and shape.
func ExampleTensor_String() {
	text := attn.Get("q").Rows(0, 3).String()
	fmt.Println(text, attn.Get("q"))
	// Output:
	// [heads 4, seq 3, dim 16] "q" [heads 4, seq 9, dim 16]
}

// Rows that a mask hides everything from, as those of padding, are found by their number. Their probabilities are 0.
func ExampleTensor_EmptyRows() {
	p := attn.Get("scores").Softmax(attn.KeyPadding(2, 0))
	fmt.Println(p.EmptyRows(), "rows of 4 heads see nothing")
	// Output:
	// 8 rows of 4 heads see nothing
}

// A large tensor that was needed for one step gives its memory back before the cell ends.
func ExampleTensor_Free() {
	s := attn.Scores(attn.Get("q"), attn.Get("k"), attn.Causal)
	p := s.Softmax()
	s.Free()
	fmt.Println(p)
	// Output:
	// [heads 4, query 9, key 9]
}

// One head alone.
func ExampleTensor_Head() {
	fmt.Println(attn.Get("p").Head(2))
	// Output:
	// [query 9, key 9]
}

// One prompt of a batch: ops and pictures are of one.
func ExampleTensor_Batch() {
	x := attn.FromSlice(make([]float32, 2*4*9*16), "batch heads seq dim", 2, 4, 9, 16)
	fmt.Println(x.Batch(1))
	// Output:
	// [heads 4, seq 9, dim 16]
}

// A cache is trimmed to its first rows, and one row is taken out of it.
func ExampleTensor_Rows() {
	k := attn.Get("k")
	fmt.Println(k.Rows(0, 5), k.Rows(8, 9))
	// Output:
	// [heads 4, seq 5, dim 16] [heads 4, seq 1, dim 16]
}

// A tensor of a framework that has its rows first, put in the order that ops take.
func ExampleTensor_Swap() {
	ctx := attn.Load("data/neox_layer.npz", "ctx").Axes("seq heads dim")
	fmt.Println(ctx.Swap())
	w := attn.FromSlice([]float32{1, 2, 3, 4, 5, 6}, "in out", 2, 3)
	fmt.Println(w.Swap(), w.Swap().Download())
	// Output:
	// [heads 4, seq 9, dim 16]
	// [out 3, in 2] [1 4 2 5 3 6]
}

// Separate projections, as of a Llama layer: 3 query heads share 1 key head.
func ExampleTensor_Heads() {
	q := attn.FromSlice(make([]float32, 5*12), "seq hidden", 5, 12).Heads(3)
	k := attn.FromSlice(make([]float32, 5*4), "seq hidden", 5, 4).Heads(1)
	fmt.Println(q, k, attn.Scores(q, k, attn.Causal))
	// Output:
	// [heads 3, seq 5, dim 4] [heads 1, seq 5, dim 4] [heads 3, query 5, key 5]
}

// What the output projection takes: the heads of each row side by side.
func ExampleTensor_Merge() {
	x := attn.FromSlice([]float32{1, 2, 3, 4, 5, 6, 7, 8}, "heads seq dim", 2, 2, 2)
	fmt.Println(x.Merge(), x.Merge().Download())
	// Output:
	// [seq 2, hidden 4] [1 2 5 6 3 4 7 8]
}

// One row that holds q, k and v of two heads of one dim, in the order of GPT-NeoX: q k v of head 0, q k v of head 1.
func ExampleTensor_SplitHeads() {
	row := attn.FromSlice([]float32{1, 2, 3, 4, 5, 6}, "seq hidden", 1, 6)
	q, k, v := row.SplitHeads(attn.NeoX(2))
	fmt.Println(q, q.Download(), k.Download(), v.Download())
	// Output:
	// [heads 2, seq 1, dim 1] [1 4] [2 5] [3 6]
}

// The layout of GPT-NeoX and Pythia, and of BLOOM.
func ExampleNeoX() {
	q, k, v := attn.Get("qkv").SplitHeads(attn.NeoX(4))
	fmt.Println(q, k, v)
	// Output:
	// [heads 4, seq 9, dim 16] [heads 4, seq 9, dim 16] [heads 4, seq 9, dim 16]
}

// The layout of GPT-2. The same row taken apart as GPT-NeoX has the same shapes, and other numbers.
func ExampleGPT2() {
	row := attn.FromSlice([]float32{1, 2, 3, 4, 5, 6}, "seq hidden", 1, 6)
	q, k, v := row.SplitHeads(attn.GPT2(2))
	fmt.Println(q.Download(), k.Download(), v.Download())
	// Output:
	// [1 2] [3 4] [5 6]
}

// 4 query heads in 2 groups: two queries, a key and a value a group, as in Falcon 40B.
func ExampleGrouped() {
	row := attn.FromSlice([]float32{1, 2, 3, 4, 5, 6, 7, 8}, "seq hidden", 1, 8)
	q, k, v := row.SplitHeads(attn.Grouped(4, 2))
	fmt.Println(q.Download(), k.Download(), v.Download())
	// Output:
	// [1 2 5 6] [3 7] [4 8]
}

// All queries first, then fewer keys and values: 4 query heads, 2 key heads.
func ExampleLayout_KV() {
	row := attn.FromSlice([]float32{1, 2, 3, 4, 5, 6, 7, 8}, "seq hidden", 1, 8)
	q, k, v := row.SplitHeads(attn.GPT2(4).KV(2))
	fmt.Println(q.Download(), k.Download(), v.Download())
	// Output:
	// [1 2 3 4] [5 6] [7 8]
}
