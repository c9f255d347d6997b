// embedding copies rows of a table.
//
//   dst     [rows, cols]: row s is row tokens[s] of the table
//   table   [entries, cols]
//   tokens  [rows], each below entries
//
// Versions: 1. as gather, with the row of the source looked up.

#pragma once

#include "common.cuh"

struct Embedding {
	Progress progress;
	View dst, table;
	unsigned *tokens;
	Extent extent;
};

template <int V> __device__ __forceinline__ void embed(const Embedding &p) {
	Chunk<V> x[UNROLL];
	unsigned h, s, c;
#pragma unroll
	for (int u = 0; u < UNROLL; u++)
		if (locate(p.extent, blockIdx.x, u, h, s, c)) x[u].load(at(p.table, 0, p.tokens[s]) + (i64)c * V);
#pragma unroll
	for (int u = 0; u < UNROLL; u++)
		if (locate(p.extent, blockIdx.x, u, h, s, c)) x[u].store(at(p.dst, 0, s) + (i64)c * V);
}

extern "C" __global__ void __launch_bounds__(BLOCK) embedding4(const __grid_constant__ Embedding p) {
	begin(p.progress);
	embed<4>(p);
}
extern "C" __global__ void __launch_bounds__(BLOCK) embedding1(const __grid_constant__ Embedding p) {
	begin(p.progress);
	embed<1>(p);
}
