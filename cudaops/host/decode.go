package host

// decodeSpan is how many keys are one piece of work of a single row.
const decodeSpan = 8 * tileKeys

// single is one row of a head on its way, by blocks of keys.
type single struct {
	row                    changed
	first, last            int       // blocks that hold something that it sees
	scores                 []float32 // [blocks][tileKeys]; then weights
	top, base, factor, sum []float32 // [blocks]
	parts                  []float32 // [blocks][dim]: the weighted sums
}

// attendRow computes a single row of each head to the bits that it has among others in a tile. Blocks of keys are apart in all but what each
// maximum is relative to; so one head with a long cache occupies every core: first all scores, then, after a pass over the maxima of the blocks,
// all weighted sums, which a last pass joins in their order. They take 1 + d/64 floats for each key and head while it runs.
func (b *Backend) attendRow(a *attention) error {
	n, dim := blocks(a.k.S, tileKeys), a.dst.D
	if a.dst.Mem == nil {
		dim = 0
	}
	heads := make([]single, a.q.H)
	each := blocks(n*(tileKeys+4+dim), 16) * 16
	memory := b.scratch
	if len(memory) < len(heads)*each {
		memory = aligned(len(heads) * each)
		if 4*len(memory) <= spareMost {
			b.scratch = memory
		}
	}
	for h := range heads {
		s := &heads[h]
		s.row = changedRow(a.changes, a.shown, h, 0)
		s.first, s.last = s.row.lo/tileKeys, blocks(s.row.hi, tileKeys)
		all := memory[h*each:][:each]
		for _, part := range []struct {
			of   *[]float32
			size int
		}{{&s.scores, tileKeys}, {&s.parts, dim}, {&s.top, 1}, {&s.base, 1}, {&s.factor, 1}, {&s.sum, 1}} {
			*part.of, all = all[:n*part.size:n*part.size], all[n*part.size:]
		}
	}
	spans := blocks(a.k.S, decodeSpan)
	eachBlock := func(do func(h int, s *single, block int)) phase {
		return phase{len(heads) * spans, func(i int) {
			h, from := i/spans, i%spans*(decodeSpan/tileKeys)
			s := &heads[h]
			for block := max(from, s.first); block < min(from+decodeSpan/tileKeys, s.last); block++ {
				do(h, s, block)
			}
		}}
	}
	return b.phases(
		eachBlock(func(h int, s *single, block int) {
			keys, q := a.keys(h), row(a.q, h, 0)
			first := block * tileKeys
			scores := s.scores[first : first+tileKeys]
			from, to := max(s.row.lo, first), min(s.row.hi, first+tileKeys)
			hide(scores)
			b.kernels.dots(scores[from-first:to-first], q, keys.from(from), keys.stride, a.scale)
			if s.row.changes() || s.row.allowed != nil {
				s.row.apply(scores[from-first:to-first], from)
			}
			s.top[block] = b.kernels.maximumRow(scores, lowest)
		}),
		phase{len(heads), func(h int) {
			s, m := &heads[h], lowest
			for i := s.first; i < s.last; i++ {
				top := max32(m, s.top[i])
				s.base[i] = above0(top)
				s.factor[i], m = m-s.base[i], top
				s.top[i] = top
			}
			f := s.factor[s.first:s.last]
			b.kernels.exponentialsRow(f, f, 0)
		}},
		eachBlock(func(h int, s *single, block int) {
			first := block * tileKeys
			weights := s.scores[first : first+tileKeys]
			s.sum[block] = b.kernels.exponentialsRow(weights, weights, s.base[block])
			if dim > 0 {
				s.row.weighted(b.kernels, s.parts[block*dim:][:dim], weights[:min(tileKeys, a.k.S-first)], a.values(h), first)
			}
		}),
		phase{len(heads), func(h int) {
			s := &heads[h]
			m, l := lowest, float32(0)
			acc := make([]float32, dim)
			for i := s.first; i < s.last; i++ {
				l = l*s.factor[i] + s.sum[i]
				b.kernels.fold(acc, s.parts[i*dim:][:dim], s.factor[i])
				m = s.top[i]
			}
			if dim > 0 {
				copy(row(a.dst, h, 0), acc)
			}
			a.finish(b.kernels, &s.row, h, 0, m, l)
		}},
	)
}
