// Package attn is what a cell imports: attention, tensor by tensor, on the device.
//
//	qkv := attn.Load("data/layer.npz", "qkv").Named("qkv")      // seq 9, hidden 192
//	q, k, v := qkv.SplitHeads(attn.NeoX(4))                     // three tensors: heads 4, seq 9, dim 16
//	q, k = q.RoPE(attn.HalfSplit(8)), k.RoPE(attn.HalfSplit(8)) // 8 of 16 dims turn, from position 0
//	s := attn.Scores(q, k, attn.Causal)
//	s.Head(2).Heatmap()
//	s.Softmax().Heatmap()
//	out := attn.Prefill(q, k, v)
//	out.Check()
//	attn.Map(q, k, attn.Causal) // a picture of it at any length
//
// # Pictures
//
// [Tensor.Heatmap], [Tensor.Interactive] and [Map] show a matrix, whole, by its values, and at any length; [Explore] puts controls beside a picture,
// which turn the calls that made it, and [Slider] and [Menu] turn the cell itself. Others are [Layers] (a number for each head), [Trace] (a query on its way
// to its context), [Decoding] (a run as it grows), [Tensor.Timeline] and [Writes] (a cache, slot by slot), [Rotation.Phasors] (what RoPE turns), and
// the options [Statistics], [Enlarge], [Differences] and [ULP].
//
// # Whole models
//
// What a model has beside its attention: [Embedding], [LayerNorm], [RMSNorm], [Linear], [Tensor.GELU], [Tensor.GELUTanh], [Tensor.SiLU], [Multiply]
// and [Add]. [OpenModel] says where the attention of a model on disk lies, and loads its weights as they are used:
//
//	m := attn.OpenModel("models/pythia-14m")
//	x := attn.Embedding(m.Tensor("gpt_neox.embed_in.weight"), tokens)
//	for _, l := range m.Layers {
//		x = attn.Add(x, l.Attend(x)) // and an MLP
//	}
//
// # Trust in numbers
//
// [Tensor.Check] and [Compare] say whether a number is wrong, [Audit] at which call, and the detectives why: [FindLayout], [FindOrder],
// [FindRoPE], [FindMask], [CheckCache], [CheckWrites]. A function of yours is asked by [Probe]. Laws need no reference: [NormsKept],
// [RowsSum], [NoFuture], [FutureUnseen], [HeadsPermute], [PrefillIsDecode], [RelativeOnly]. [Ladder] computes one cell in each number format. All give a
// [Finding], which [Require] takes:
//
//	attn.Require(attn.FindRoPE(q, theirs, attn.HalfSplit(64).Offset(past)))
//
// # Variants of attention
//
// What the field's variants do to scores comes always in this order: [Scale], [Softcap], [Bias] and [ALiBi], then what is hidden ([Causal], [Window],
// [KeyPadding], [Documents], [Allowed]), then the softmax, with [Sinks]. Scores keep scale * q.k and hand the numbers of a variant on
// to Softmax; the tensors, Bias, Allowed and Sinks, are given to Softmax itself. So
//
//	s := attn.Scores(q, k, attn.Causal, attn.Window(128), attn.Softcap(50))
//	attn.Context(s.Softmax(attn.Sinks(sinks)), v)
//
// is attn.Prefill(q, k, v, attn.Window(128), attn.Softcap(50), attn.Sinks(sinks)), step by step. What Softmax is given takes the place of
// the same that the scores bring.
//
// # Rules
//
// What takes one tensor is a method of it; what takes several is a function. Nothing changes a tensor: each call makes
// a new one.
//
// Tensors live in the device process, which outlives the cell. A tensor with a name ([Tensor.Named], [Once]) is there in the next
// cell, by [Get]. One without a name lives until the cell ends. [Save] and [Restore] take those with a name over a restart.
//
// A call that fails stops the cell with one line that says what did not fit, of which tensors with which shapes, and where; nothing is
// returned that would have to be looked at. Outside of a notebook of this kernel every call fails so. Shapes stand in brackets, outermost dimension first: [heads, seq, dim]. Heads, rows,
// queries, keys, tokens and positions count from 0. "kv heads" is the number of key and value heads, which divides that of query heads.
package attn
