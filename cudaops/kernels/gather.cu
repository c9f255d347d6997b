// gather copies up to PAIRS views in one launch, each to a view of the same dimensions: the split of fused rows into
// q, k and v, the merge of heads, the swap of the first two axes, appends to a cache, pitched copies.
//
//   dst, src  [heads, rows, cols], strides free
//
// Versions: 1. one launch for all pairs, pair innermost, so that the parts of one fused row are read together.

#include "common.cuh"

#define PAIRS 8

struct Pair {
	View dst, src;
	Extent extent;
	unsigned blocks, reserved;
};

struct Gather {
	Progress progress;
	Pair pair[PAIRS];
	unsigned pairs, reserved;
};

template <int V> __device__ __forceinline__ void gather(const Gather &g) {
	const Pair &p = g.pair[blockIdx.x % g.pairs];
	unsigned block = blockIdx.x / g.pairs;
	if (block >= p.blocks) return;
	Chunk<V> x[UNROLL];
	unsigned h, s, c;
#pragma unroll
	for (int u = 0; u < UNROLL; u++)
		if (locate(p.extent, block, u, h, s, c)) x[u].load(at(p.src, h, s) + (i64)c * V);
#pragma unroll
	for (int u = 0; u < UNROLL; u++)
		if (locate(p.extent, block, u, h, s, c)) x[u].store(at(p.dst, h, s) + (i64)c * V);
}

extern "C" __global__ void __launch_bounds__(BLOCK) gather4(const __grid_constant__ Gather g) {
	begin(g.progress);
	gather<4>(g);
}
extern "C" __global__ void __launch_bounds__(BLOCK) gather1(const __grid_constant__ Gather g) {
	begin(g.progress);
	gather<1>(g);
}
