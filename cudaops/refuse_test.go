package cudaops_test

import (
	"errors"
	"math"
	"reflect"
	"testing"

	"github.com/attnb/attnb/cudaops"
	"github.com/attnb/attnb/cudaops/host"
	"github.com/attnb/attnb/cudaops/optest"
	"github.com/attnb/attnb/cudaops/plan"
)

type buffers = []*cudaops.Buffer

// refusals are inputs that do not fit, with the whole message.
var refusals = []struct {
	name string
	in   [][3]int // shapes of the inputs
	op   func(d *cudaops.Device, in buffers) (any, error)
	want string
}{
	{"upload no heads", nil, func(d *cudaops.Device, _ buffers) (any, error) { return d.Upload(nil, 0, 3, 4) },
		"Upload: data [0 3 4]: heads is 0, must be at least 1"},
	{"upload no rows", nil, func(d *cudaops.Device, _ buffers) (any, error) { return d.Upload(nil, 2, 0, 4) },
		"Upload: data [2 0 4]: rows is 0, must be at least 1"},
	{"upload negative", nil, func(d *cudaops.Device, _ buffers) (any, error) { return d.Upload(nil, 2, 3, -4) },
		"Upload: data [2 3 -4]: dim is -4, must be at least 1"},
	{"upload too few", nil, func(d *cudaops.Device, _ buffers) (any, error) { return d.Upload(make([]float32, 23), 2, 3, 4) },
		"Upload: data [2 3 4]: 23 values given, the shape has 24"},
	{"upload overflow", nil, func(d *cudaops.Device, _ buffers) (any, error) { return d.Upload(nil, 1<<16, 1<<15, 1<<31) },
		"Upload: data [65536 32768 2147483648]: heads 65536 * rows 32768 * dim 2147483648 overflows"},
	{"upload rows past u32", nil, func(d *cudaops.Device, _ buffers) (any, error) { return d.Upload(nil, 1<<16, 1<<16, 1) },
		"Upload: data [65536 65536 1]: heads 65536 * rows 65536 is more than 4294967295"},
	{"upload dim past u32", nil, func(d *cudaops.Device, _ buffers) (any, error) { return d.Upload(nil, 1, 1, 1<<32) },
		"Upload: data [1 1 4294967296]: dim is 4294967296, more than 4294967295"},

	{"rope odd", [][3]int{{4, 9, 16}}, rope(cudaops.RoPE{Rotary: 7, Base: 1e4}), "RoPE: x [4 9 16]: rotary dims 7 is odd"},
	{"rope none", [][3]int{{4, 9, 16}}, rope(cudaops.RoPE{Base: 1e4}), "RoPE: x [4 9 16]: rotary dims is 0, must be at least 2"},
	{"rope wide", [][3]int{{4, 9, 16}}, rope(cudaops.RoPE{Rotary: 18, Base: 1e4}), "RoPE: x [4 9 16]: rotary dims 18 is more than the head dim 16"},
	{"rope far", [][3]int{{4, 9, 16}}, rope(cudaops.RoPE{Rotary: 8, Base: 1e4, Offset: cudaops.MaxPosition - 8}),
		"RoPE: x [4 9 16]: offset 134217720 with 9 rows: |position| must be below 134217728"},
	{"rope overflow", [][3]int{{4, 9, 16}}, rope(cudaops.RoPE{Rotary: 8, Base: 1e4, Offset: math.MaxInt}),
		"RoPE: x [4 9 16]: offset 9223372036854775807 with 9 rows: |position| must be below 134217728"},
	{"rope far before", [][3]int{{4, 9, 16}}, rope(cudaops.RoPE{Rotary: 8, Base: 1e4, Offset: -cudaops.MaxPosition}),
		"RoPE: x [4 9 16]: offset -134217728 with 9 rows: |position| must be below 134217728"},
	{"rope far row", [][3]int{{4, 2, 16}}, rope(cudaops.RoPE{Rotary: 8, Base: 1e4, Positions: []int{0, math.MinInt}}),
		"RoPE: x [4 2 16]: position -9223372036854775808 of row 1: |position| must be below 134217728"},
	{"rope few positions", [][3]int{{4, 2, 16}}, rope(cudaops.RoPE{Rotary: 8, Base: 1e4, Positions: []int{0}}),
		"RoPE: x [4 2 16]: 1 positions for 2 rows"},
	{"rope two origins", [][3]int{{4, 2, 16}}, rope(cudaops.RoPE{Rotary: 8, Base: 1e4, Positions: []int{0, 1}, Offset: 3}),
		"RoPE: x [4 2 16]: offset 3 and positions are both given"},
	{"rope base", [][3]int{{4, 2, 16}}, rope(cudaops.RoPE{Rotary: 8, Base: math.NaN()}), "RoPE: x [4 2 16]: base is NaN, must be positive and finite"},
	{"rope base 0", [][3]int{{4, 2, 16}}, rope(cudaops.RoPE{Rotary: 8}), "RoPE: x [4 2 16]: base is 0, must be positive and finite"},
	{"rope far angle", [][3]int{{4, 2, 16}}, rope(cudaops.RoPE{Rotary: 4, InvFreq: []float64{1, 1e75}, Offset: 1}),
		"RoPE: x [4 2 16]: inverse frequency 1 is 1e+75: |position| 2 times it must be below 134217728"},
	{"rope frequencies", [][3]int{{4, 2, 16}}, rope(cudaops.RoPE{Rotary: 8, InvFreq: []float64{1}}),
		"RoPE: x [4 2 16]: 1 inverse frequencies for 8 rotary dims, which need 4"},
	{"rope frequency", [][3]int{{4, 2, 16}}, rope(cudaops.RoPE{Rotary: 4, InvFreq: []float64{1, math.Inf(1)}}),
		"RoPE: x [4 2 16]: inverse frequency 1 is +Inf, must be finite"},
	{"rope f32 frequency", [][3]int{{4, 2, 16}}, rope(cudaops.RoPE{Rotary: 4, InvFreq: []float64{1, 1e300}, Angle: cudaops.AngleFloat32}),
		"RoPE: x [4 2 16]: inverse frequency 1 is 1e+300, must be finite in f32"},
	{"rope magnitude", [][3]int{{4, 2, 16}}, rope(cudaops.RoPE{Rotary: 4, Base: 1e4, Magnitude: 1e300}),
		"RoPE: x [4 2 16]: magnitude is 1e+300, must be finite in f32"},
	{"rope convention", [][3]int{{4, 2, 16}}, rope(cudaops.RoPE{Rotary: 4, Base: 1e4, Convention: 2}), "RoPE: x [4 2 16]: unknown convention 2"},
	{"rope angle", [][3]int{{4, 2, 16}}, rope(cudaops.RoPE{Rotary: 4, Base: 1e4, Angle: 2}), "RoPE: x [4 2 16]: unknown angle precision 2"},

	{"split width", [][3]int{{1, 9, 47}}, split(plan.GPT2, 4, 4, 4),
		"SplitHeads: x [1 9 47]: 47 elements a row, but layout GPT2 with 4 heads, 4 KV heads and dim 4 has 48"},
	{"split heads", [][3]int{{2, 9, 48}}, split(plan.GPT2, 4, 4, 4), "SplitHeads: x [2 9 48]: fused rows have 1 head, not 2"},
	{"split groups", [][3]int{{1, 9, 48}}, split(plan.Grouped, 4, 3, 4), "SplitHeads: x [1 9 48]: 4 heads are not a multiple of 3 KV heads"},
	{"split NeoX", [][3]int{{1, 9, 32}}, split(plan.NeoX, 4, 2, 4),
		"SplitHeads: x [1 9 32]: layout NeoX has as many KV heads as heads, not 2 and 4: that is Grouped"},
	{"split dim 0", [][3]int{{1, 9, 48}}, split(plan.GPT2, 4, 4, 0), "SplitHeads: x [1 9 48]: dim is 0, must be at least 1"},
	{"gather end", [][3]int{{1, 3, 12}}, gather(plan.Gather{Rows: 3, SrcRowStride: 12, CompOffset: 9, HeadStride: 2, Heads: 2, Dim: 2}),
		"GatherHeads: src [1 3 12]: gather ends at 37, past its 36 elements"},
	{"gather rows 0", [][3]int{{1, 3, 12}}, gather(plan.Gather{SrcRowStride: 12, HeadStride: 2, Heads: 2, Dim: 2}),
		"GatherHeads: src [1 3 12]: rows is 0, must be at least 1"},
	{"gather rows past u32", [][3]int{{1, 1, 1}}, gather(plan.Gather{Rows: 1, SrcRowStride: 1, Heads: 1 << 32, Dim: 1}),
		"GatherHeads: src [1 1 1]: heads is 4294967296, more than 4294967295"},
	{"gather all rows past u32", [][3]int{{1, 2, 1}}, gather(plan.Gather{Rows: 2, SrcRowStride: 1, Heads: math.MaxUint32, Dim: 1, HeadsMajor: true}),
		"GatherHeads: src [1 2 1]: heads 4294967295 * rows 2 is more than 4294967295"},
	{"pitched copy", [][3]int{{1, 2, 3}, {1, 2, 5}}, func(d *cudaops.Device, in buffers) (any, error) {
		return d.PitchedCopy(in[0], in[1], plan.PitchedCopy{SrcOffset: 3, SrcPitch: 5, DstPitch: 3, Width: 3, Height: 2})
	}, "PitchedCopy: dst [1 2 3], src [1 2 5]: source ends at 11, past its 10 elements"},

	{"add", [][3]int{{2, 3, 4}, {2, 4, 3}}, func(d *cudaops.Device, in buffers) (any, error) { return d.Add(in[0], in[1]) },
		"Add: a [2 3 4], b [2 4 3]: shapes differ"},
	{"multiply", [][3]int{{2, 3, 4}, {2, 4, 3}}, func(d *cudaops.Device, in buffers) (any, error) { return d.Multiply(in[0], in[1]) },
		"Multiply: a [2 3 4], b [2 4 3]: shapes differ"},
	{"activation", [][3]int{{2, 3, 4}}, func(d *cudaops.Device, in buffers) (any, error) { return d.Activate(in[0], 3) },
		"Activate: x [2 3 4]: unknown activation 3"},
	{"embedding heads", [][3]int{{2, 3, 4}}, embedding(0), "Embedding: table [2 3 4]: the table must have 1 head"},
	{"embedding of nothing", [][3]int{{1, 3, 4}}, embedding(), "Embedding: table [1 3 4]: no tokens"},
	{"embedding token", [][3]int{{1, 3, 4}}, embedding(2, 3), "Embedding: table [1 3 4]: token 1 is 3, must be 0 to 2"},
	{"embedding below 0", [][3]int{{1, 3, 4}}, embedding(-1), "Embedding: table [1 3 4]: token 0 is -1, must be 0 to 2"},
	{"norm weight", [][3]int{{2, 3, 4}, {1, 1, 3}}, layerNorm(1e-5), "LayerNorm: x [2 3 4], w [1 1 3]: the weight must be [1 1 4]"},
	{"norm bias", [][3]int{{2, 3, 4}, {1, 1, 4}, {1, 2, 4}}, layerNorm(1e-5), "LayerNorm: x [2 3 4], b [1 2 4]: the bias must be [1 1 4]"},
	{"norm eps", [][3]int{{2, 3, 4}}, layerNorm(0), "LayerNorm: x [2 3 4]: eps is 0, must be a positive number that f32 holds"},
	{"norm denormal eps", [][3]int{{2, 3, 4}}, layerNorm(1e-40), "LayerNorm: x [2 3 4]: eps is 1e-40, must be a positive number that f32 holds"},
	{"norm NaN eps", [][3]int{{2, 3, 4}}, layerNorm(math.NaN()), "LayerNorm: x [2 3 4]: eps is NaN, must be a positive number that f32 holds"},
	{"norm large eps", [][3]int{{2, 3, 4}}, func(d *cudaops.Device, in buffers) (any, error) { return d.RMSNorm(in[0], nil, 1e39) },
		"RMSNorm: x [2 3 4]: eps is 1e+39, must be a positive number that f32 holds"},
	{"rmsnorm weight", [][3]int{{2, 3, 4}, {2, 1, 4}}, func(d *cudaops.Device, in buffers) (any, error) { return d.RMSNorm(in[0], in[1], 1) },
		"RMSNorm: x [2 3 4], w [2 1 4]: the weight must be [1 1 4]"},
	{"softmax diagonal", [][3]int{{2, 3, 4}}, func(d *cudaops.Device, in buffers) (any, error) {
		y, _, err := d.Softmax(in[0], cudaops.Mask{Causal: true, Diagonal: math.MinInt})
		return y, err
	}, "Softmax: x [2 3 4]: diagonal -9223372036854775808 is not within -4294967295 to 4294967295"},
	{"linear width", [][3]int{{1, 3, 4}, {1, 5, 6}}, linear, "Linear: x [1 3 4], w [1 5 6]: rows of 4 elements, weights for 6"},
	{"linear heads", [][3]int{{2, 3, 4}, {1, 5, 4}}, linear, "Linear: x [2 3 4], w [1 5 4]: x and w must have 1 head"},
	{"linear bias", [][3]int{{1, 3, 4}, {1, 5, 4}, {1, 1, 4}}, linear, "Linear: w [1 5 4], b [1 1 4]: the bias must be [1 1 5]"},

	{"scores dim", [][3]int{{4, 9, 16}, {2, 9, 8}}, scores(1), "Scores: q [4 9 16], k [2 9 8]: head dims 16 and 8 differ"},
	{"scores groups", [][3]int{{8, 5, 64}, {3, 7, 64}}, scores(1), "Scores: q [8 5 64], k [3 7 64]: 8 heads are not a multiple of 3 KV heads"},
	{"scores fewer heads", [][3]int{{2, 5, 4}, {4, 7, 4}}, scores(1), "Scores: q [2 5 4], k [4 7 4]: 2 heads are not a multiple of 4 KV heads"},
	{"scores scale", [][3]int{{2, 5, 4}, {2, 7, 4}}, scores(math.Inf(1)), "Scores: q [2 5 4], k [2 7 4]: scale is +Inf, must be finite in f32"},
	{"scores f32 scale", [][3]int{{2, 5, 4}, {2, 7, 4}}, scores(1e39), "Scores: q [2 5 4], k [2 7 4]: scale is 1e+39, must be finite in f32"},

	{"context keys", [][3]int{{4, 5, 9}, {2, 8, 16}}, weigh, "Context: p [4 5 9], v [2 8 16]: probabilities of 9 keys, values of 8"},
	{"context groups", [][3]int{{4, 5, 8}, {3, 8, 16}}, weigh, "Context: p [4 5 8], v [3 8 16]: 4 heads are not a multiple of 3 KV heads"},

	{"prefill values", [][3]int{{4, 9, 16}, {2, 9, 16}, {2, 8, 16}}, prefill(cudaops.Mask{}),
		"Prefill: k [2 9 16], v [2 8 16]: keys and values differ in shape"},
	{"prefill more queries", [][3]int{{4, 9, 16}, {2, 8, 16}, {2, 8, 16}}, prefill(cudaops.Mask{Causal: true, Diagonal: -1}),
		"Prefill: q [4 9 16], k [2 8 16]: 9 queries against 8 keys: a causal mask needs at least as many keys"},
	{"prefill diagonal", [][3]int{{4, 9, 16}, {2, 9, 16}, {2, 9, 16}}, prefill(cudaops.Mask{Causal: true, Diagonal: math.MaxInt}),
		"Prefill: q [4 9 16], k [2 9 16]: diagonal 9223372036854775807 is not within -4294967295 to 4294967295"},
	{"decode rows", [][3]int{{4, 2, 16}, {2, 9, 16}, {2, 9, 16}}, decode, "Decode: q [4 2 16]: 2 query rows a head, must be 1"},
	{"decode groups", [][3]int{{4, 1, 16}, {3, 9, 16}, {3, 9, 16}}, decode, "Decode: q [4 1 16], k [3 9 16]: 4 heads are not a multiple of 3 KV heads"},

	{"window negative", [][3]int{{2, 3, 4}}, softmax(cudaops.Mask{Window: -1}, cudaops.Variant{}, nil),
		"Softmax: x [2 3 4]: window -1 is not within 1 to 4294967295; 0 is none"},
	{"padding", [][3]int{{2, 3, 4}}, softmax(cudaops.Mask{PadLeft: 3, PadRight: 2}, cudaops.Variant{}, nil),
		"Softmax: x [2 3 4]: padding of 3 and 2 columns does not fit 4"},
	{"padding past int", [][3]int{{2, 3, 4}}, softmax(cudaops.Mask{PadLeft: math.MaxInt, PadRight: math.MaxInt}, cudaops.Variant{}, nil),
		"Softmax: x [2 3 4]: padding of 9223372036854775807 and 9223372036854775807 columns does not fit 4"},
	{"document", [][3]int{{2, 3, 4}}, softmax(cudaops.Mask{Documents: []int{2, 0, 2}}, cudaops.Variant{}, nil),
		"Softmax: x [2 3 4]: document 1 has 0 columns, must be 1 to the 2 that are left of 4"},
	{"documents too many", [][3]int{{2, 3, 4}}, softmax(cudaops.Mask{Documents: []int{2, 3}}, cudaops.Variant{}, nil),
		"Softmax: x [2 3 4]: document 1 has 3 columns, must be 1 to the 2 that are left of 4"},
	{"documents too few", [][3]int{{2, 3, 4}}, softmax(cudaops.Mask{Documents: []int{2, 1}}, cudaops.Variant{}, nil),
		"Softmax: x [2 3 4]: 2 documents leave 1 of 4 columns"},
	{"no documents", [][3]int{{2, 3, 4}}, softmax(cudaops.Mask{Documents: []int{}}, cudaops.Variant{}, nil),
		"Softmax: x [2 3 4]: 0 documents leave 4 of 4 columns"},
	{"window diagonal", [][3]int{{2, 3, 4}}, softmax(cudaops.Mask{Window: 2, Diagonal: math.MaxInt}, cudaops.Variant{}, nil),
		"Softmax: x [2 3 4]: diagonal 9223372036854775807 is not within -4294967295 to 4294967295"},
	{"slopes diagonal", [][3]int{{2, 3, 4}}, softmax(cudaops.Mask{Diagonal: math.MinInt}, cudaops.Variant{Slopes: []float64{1, 2}}, nil),
		"Softmax: x [2 3 4]: diagonal -9223372036854775808 is not within -4294967295 to 4294967295"},
	{"softcap", [][3]int{{2, 3, 4}}, softmax(cudaops.Mask{}, cudaops.Variant{Softcap: -50}, nil),
		"Softmax: x [2 3 4]: softcap is -50, must be positive and finite in f32; leave it out for none"},
	{"softcap NaN", [][3]int{{2, 3, 4}}, softmax(cudaops.Mask{}, cudaops.Variant{Softcap: math.NaN()}, nil),
		"Softmax: x [2 3 4]: softcap is NaN, must be positive and finite in f32; leave it out for none"},
	{"softcap below f32", [][3]int{{2, 3, 4}}, softmax(cudaops.Mask{}, cudaops.Variant{Softcap: 1e-60}, nil),
		"Softmax: x [2 3 4]: softcap is 1e-60, must be positive and finite in f32; leave it out for none"},
	{"slopes", [][3]int{{2, 3, 4}}, softmax(cudaops.Mask{}, cudaops.Variant{Slopes: []float64{1}}, nil), "Softmax: x [2 3 4]: 1 ALiBi slopes for 2 heads"},
	{"slope", [][3]int{{2, 3, 4}}, softmax(cudaops.Mask{}, cudaops.Variant{Slopes: []float64{1, 1e39}}, nil),
		"Softmax: x [2 3 4]: ALiBi slope 1 is 1e+39, must be finite in f32"},
	{"bias columns", [][3]int{{2, 3, 4}, {2, 3, 5}}, softmax(cudaops.Mask{}, cudaops.Variant{}, bias),
		"Softmax: bias [2 3 5]: must fit scores [2 3 4]: as many columns, and as many rows and heads or 1"},
	{"bias heads", [][3]int{{4, 3, 4}, {2, 3, 4}}, softmax(cudaops.Mask{}, cudaops.Variant{}, bias),
		"Softmax: bias [2 3 4]: must fit scores [4 3 4]: as many columns, and as many rows and heads or 1"},
	{"allowed rows", [][3]int{{2, 3, 4}, {1, 2, 4}}, softmax(cudaops.Mask{}, cudaops.Variant{}, func(v *cudaops.Variant, b *cudaops.Buffer) { v.Allowed = b }),
		"Softmax: allowed [1 2 4]: must fit scores [2 3 4]: as many columns, and as many rows and heads or 1"},
	{"sinks", [][3]int{{2, 3, 4}, {1, 1, 3}}, softmax(cudaops.Mask{}, cudaops.Variant{}, sinks), "Softmax: sinks [1 1 3]: must be [1 1 2], one a head"},
	{"prefill variant dims", [][3]int{{4, 9, 16}, {2, 9, 8}, {2, 9, 8}}, prefill(cudaops.Mask{Window: 2}), "Prefill: q [4 9 16], k [2 9 8]: head dims 16 and 8 differ"},
	{"prefill variant window", [][3]int{{4, 9, 16}, {2, 9, 16}, {2, 9, 16}}, prefill(cudaops.Mask{Window: math.MaxInt}),
		"Prefill: q [4 9 16], k [2 9 16]: window 9223372036854775807 is not within 1 to 4294967295; 0 is none"},
	{"prefill variant more queries", [][3]int{{4, 9, 16}, {2, 8, 16}, {2, 8, 16}}, prefill(cudaops.Mask{Causal: true, Window: 2}),
		"Prefill: q [4 9 16], k [2 8 16]: 9 queries against 8 keys: a causal mask needs at least as many keys"},
	{"lse window", [][3]int{{2, 2, 16}, {2, 9, 16}}, lse(cudaops.Mask{Window: 2}),
		"LSE: q [2 2 16], k [2 9 16]: of masks it takes causal ones alone: no window, padding or documents"},

	{"lse groups", [][3]int{{4, 2, 16}, {3, 9, 16}}, lse(cudaops.Mask{}), "LSE: q [4 2 16], k [3 9 16]: 4 heads are not a multiple of 3 KV heads"},
	{"lse diagonal", [][3]int{{2, 2, 16}, {2, 9, 16}}, lse(cudaops.Mask{Causal: true, Diagonal: math.MaxInt}),
		"LSE: q [2 2 16], k [2 9 16]: diagonal 9223372036854775807 is not within -4294967295 to 4294967295"},
	{"pool dims", [][3]int{{4, 9, 16}, {2, 9, 8}}, pool(cudaops.Pooling{Rows: 1, Cols: 1}), "Pool: q [4 9 16], k [2 9 8]: head dims 16 and 8 differ"},
	{"pool no rows", [][3]int{{2, 9, 16}, {2, 7, 16}}, pool(cudaops.Pooling{Cols: 1}), "Pool: q [2 9 16]: 9 queries do not pool into 0 rows"},
	{"pool more rows", [][3]int{{2, 9, 16}, {2, 7, 16}}, pool(cudaops.Pooling{Rows: 10, Cols: 1}), "Pool: q [2 9 16]: 9 queries do not pool into 10 rows"},
	{"pool more columns", [][3]int{{2, 9, 16}, {2, 7, 16}}, pool(cudaops.Pooling{Rows: 9, Cols: 8}), "Pool: k [2 7 16]: 7 keys do not pool into 8 columns"},
	{"pool reduction", [][3]int{{2, 9, 16}, {2, 7, 16}}, pool(cudaops.Pooling{Rows: 1, Cols: 1, Reduce: 4}), "Pool: q [2 9 16], k [2 7 16]: unknown reduction 4"},
	{"pool scale", [][3]int{{2, 9, 16}, {2, 7, 16}}, pool(cudaops.Pooling{Rows: 1, Cols: 1, Scale: math.NaN()}),
		"Pool: q [2 9 16], k [2 7 16]: scale is NaN, must be finite in f32"},
	{"pool diagonal", [][3]int{{2, 9, 16}, {2, 7, 16}}, pool(cudaops.Pooling{Rows: 1, Cols: 1, Mask: cudaops.Mask{Causal: true, Diagonal: math.MinInt}}),
		"Pool: q [2 9 16], k [2 7 16]: diagonal -9223372036854775808 is not within -4294967295 to 4294967295"},
	{"pool other sums", [][3]int{{2, 9, 16}, {2, 7, 16}, {1, 2, 8}}, pool(cudaops.Pooling{Rows: 1, Cols: 1}),
		"Pool: q [2 9 16], lse [1 2 8]: the log of the sums must be [1 2 9]"},

	{"append heads", [][3]int{{2, 9, 16}, {4, 1, 16}}, appendKV, "AppendKV: cache [2 9 16], rows [4 1 16]: heads and head dim must be equal"},
	{"append dim", [][3]int{{2, 9, 16}, {2, 1, 8}}, appendKV, "AppendKV: cache [2 9 16], rows [2 1 8]: heads and head dim must be equal"},

	{"head", [][3]int{{2, 3, 4}}, func(_ *cudaops.Device, in buffers) (any, error) { return in[0].Head(2) },
		"Head: x [2 3 4]: head 2 is not within 0 to 1"},
	{"head before", [][3]int{{2, 3, 4}}, func(_ *cudaops.Device, in buffers) (any, error) { return in[0].Head(-1) },
		"Head: x [2 3 4]: head -1 is not within 0 to 1"},
	{"heads", [][3]int{{2, 3, 4}}, func(_ *cudaops.Device, in buffers) (any, error) { return in[0].Heads(1, 3) },
		"Heads: x [2 3 4]: heads 1 to 3 are not within 0 to 2"},
	{"rows", [][3]int{{2, 3, 4}}, func(_ *cudaops.Device, in buffers) (any, error) { return in[0].Rows(2, 2) },
		"Rows: x [2 3 4]: rows 2 to 2 are not within 0 to 3"},
	{"columns", [][3]int{{2, 3, 4}}, func(_ *cudaops.Device, in buffers) (any, error) { return in[0].Columns(-1, 2) },
		"Columns: x [2 3 4]: columns -1 to 2 are not within 0 to 4"},
	{"as heads", [][3]int{{1, 3, 4}}, func(_ *cudaops.Device, in buffers) (any, error) { return in[0].AsHeads(3) },
		"AsHeads: x [1 3 4]: 4 elements a row are not a multiple of 3 heads"},
	{"as no heads", [][3]int{{1, 3, 4}}, func(_ *cudaops.Device, in buffers) (any, error) { return in[0].AsHeads(0) },
		"AsHeads: x [1 3 4]: heads is 0, must be at least 1"},
	{"heads twice", [][3]int{{2, 3, 4}}, func(_ *cudaops.Device, in buffers) (any, error) { return in[0].AsHeads(2) },
		"AsHeads: x [2 3 4]: already has 2 heads"},
	{"reshape", [][3]int{{2, 3, 4}}, func(_ *cudaops.Device, in buffers) (any, error) { return in[0].Reshape(1, 5, 5) },
		"Reshape: x [2 3 4]: 24 elements do not make [1 5 5]"},
	{"no buffer", nil, func(d *cudaops.Device, _ buffers) (any, error) { return d.Add(nil, nil) }, "Add: a: no buffer given"},
	{"zero buffer", nil, func(d *cudaops.Device, _ buffers) (any, error) { return d.Swap(new(cudaops.Buffer)) }, "Swap: x: no buffer given"},
	{"view of none", nil, func(*cudaops.Device, buffers) (any, error) { return new(cudaops.Buffer).Head(0) }, "Head: x: no buffer given"},
	{"release none", nil, func(*cudaops.Device, buffers) (any, error) {
		return (*cudaops.Buffer)(nil), (*cudaops.Buffer)(nil).Release()
	}, "Release: buffer: no buffer given"},
	{"retain zero", nil, func(*cudaops.Device, buffers) (any, error) {
		return (*cudaops.Buffer)(nil), new(cudaops.Buffer).Retain()
	}, "Retain: buffer: no buffer given"},
}

func rope(r cudaops.RoPE) func(d *cudaops.Device, in buffers) (any, error) {
	return func(d *cudaops.Device, in buffers) (any, error) { return d.RoPE(in[0], r) }
}

func split(l plan.Layout, heads, kv, dim int) func(d *cudaops.Device, in buffers) (any, error) {
	return func(d *cudaops.Device, in buffers) (any, error) {
		q, k, v, err := d.SplitHeads(in[0], l, heads, kv, dim)
		if k != nil || v != nil {
			return k, err
		}
		return q, err
	}
}

func gather(g plan.Gather) func(d *cudaops.Device, in buffers) (any, error) {
	return func(d *cudaops.Device, in buffers) (any, error) { return d.GatherHeads(in[0], g) }
}

func lse(m cudaops.Mask) func(*cudaops.Device, buffers) (any, error) {
	return func(d *cudaops.Device, in buffers) (any, error) { return d.LSE(in[0], in[1], 1, m) }
}

// pool takes q, k and, where there is one, the log of the sums.
func pool(p cudaops.Pooling) func(*cudaops.Device, buffers) (any, error) {
	return func(d *cudaops.Device, in buffers) (any, error) {
		if len(in) == 2 {
			in = append(in, nil)
		}
		return d.Pool(in[0], in[1], in[2], p)
	}
}

func linear(d *cudaops.Device, in buffers) (any, error) {
	return d.Linear(in[0], in[1], append(in, nil)[2])
}

func embedding(tokens ...int) func(*cudaops.Device, buffers) (any, error) {
	return func(d *cudaops.Device, in buffers) (any, error) { return d.Embedding(in[0], tokens) }
}

// layerNorm takes x and, where there are such, weight and bias.
func layerNorm(eps float64) func(*cudaops.Device, buffers) (any, error) {
	return func(d *cudaops.Device, in buffers) (any, error) {
		in = append(in, nil, nil)
		return d.LayerNorm(in[0], in[1], in[2], eps)
	}
}

func scores(scale float64) func(d *cudaops.Device, in buffers) (any, error) {
	return func(d *cudaops.Device, in buffers) (any, error) { return d.Scores(in[0], in[1], scale) }
}

func weigh(d *cudaops.Device, in buffers) (any, error) { return d.Context(in[0], in[1]) }

func prefill(m cudaops.Mask) func(d *cudaops.Device, in buffers) (any, error) {
	return func(d *cudaops.Device, in buffers) (any, error) {
		r, err := d.Prefill(in[0], in[1], in[2], cudaops.Attention{Scale: 1, Mask: m, LSE: true})
		return r.Context, err
	}
}

// softmax gives the second input to the variant by put.
func softmax(m cudaops.Mask, v cudaops.Variant, put func(*cudaops.Variant, *cudaops.Buffer)) func(*cudaops.Device, buffers) (any, error) {
	return func(d *cudaops.Device, in buffers) (any, error) {
		v := v
		if put != nil {
			put(&v, in[1])
		}
		y, _, err := d.SoftmaxVariant(in[0], m, v)
		return y, err
	}
}

func bias(v *cudaops.Variant, b *cudaops.Buffer) { v.Bias = b }

func sinks(v *cudaops.Variant, b *cudaops.Buffer) { v.Sinks = b }

func decode(d *cudaops.Device, in buffers) (any, error) { return d.Decode(in[0], in[1], in[2], 1) }

func appendKV(d *cudaops.Device, in buffers) (any, error) { return d.AppendKV(in[0], in[1]) }

func TestRefusesBadInput(t *testing.T) {
	faults := &optest.Faults{Backend: host.New(host.Options{})}
	d := cudaops.NewDevice(faults)
	for _, test := range refusals {
		t.Run(test.name, func(t *testing.T) {
			var in buffers
			for _, s := range test.in {
				in = append(in, zeros(t, d, s[0], s[1], s[2]))
			}
			before := d.InUse()
			faults.Reset()
			out, err := test.op(d, in)
			if err == nil || err.Error() != test.want {
				t.Fatalf("got  %v\nwant %s", err, test.want)
			}
			if e := (*cudaops.InputError)(nil); !errors.As(err, &e) {
				t.Errorf("%T is no *InputError", err)
			}
			for _, kind := range []error{cudaops.ErrDevice, cudaops.ErrUnsupported, cudaops.ErrOutOfMemory} {
				if errors.Is(err, kind) {
					t.Errorf("is %v", kind)
				}
			}
			if !reflect.ValueOf(out).IsNil() {
				t.Error("a result beside the error")
			}
			if faults.Allocs+faults.Calls > 0 || d.InUse() != before {
				t.Errorf("%d allocations, %d calls, %d bytes in use, %d before", faults.Allocs, faults.Calls, d.InUse(), before)
			}
			for _, b := range in {
				if err := b.Release(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func zeros(t testing.TB, d *cudaops.Device, h, s, dim int) *cudaops.Buffer {
	t.Helper()
	b, err := d.Upload(make([]float32, h*s*dim), h, s, dim)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
