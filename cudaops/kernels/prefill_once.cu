// prefill_once is prefill_halves for up to 128 keys, in one launch: each block of 32 rows makes the pairs of all keys and values by itself.
//
// A prefill so short does not fill the GPU; what counts is how long one block takes, and a launch.
//
// Versions, for H 32, d 128, S 128 on an H200: 1. this.

#pragma once

#include "halves.cu"
#include "prefill_halves.cu"

#ifdef TENSOR

template <int D> __device__ __forceinline__ void prefillOnce(const Prefill &p) {
	constexpr int ROWS = 32, TILE = 4 * TILE_KEYS * D, FACTORS = TILE_KEYS + D + 4;
	extern __shared__ __align__(16) float shared[];
	half16 *q = (half16 *)shared;
	float *down = shared + ROWS * D, *tiles = down + ROWS, *factors = tiles + TILE;
	int warp = threadIdx.x / 32;
	unsigned h = blockIdx.x, kv = h / p.group, row0 = (gridDim.y - 1 - blockIdx.y) * ROWS;
	unsigned keys = (unsigned)visible(min(row0 + ROWS, p.s) - 1, p.t, p.causal, p.diagonal); // that any row of the block sees

	HalvesTile<D> first, second;
	if (keys > 0) first.load(p, kv, 0);
	float most = queries<D, ROWS>(p, h, row0, q, down), reach = 0;
	if (keys > TILE_KEYS) second.load(p, kv, 1);
	if (keys > 0) reach = first.make((half16 *)tiles, factors, (int)p.t);
	if (keys > TILE_KEYS) reach = fmaxf(reach, second.make((half16 *)tiles + TILE, factors + FACTORS, (int)p.t - TILE_KEYS));
	if (!pairsDo<D>(reach, most, p.scale)) {
		inFull<D, ROWS / 16>(p, h, row0);
		return;
	}
	HalvesWarp<D, 1> w;
	w.clear();
	int own = warp % 2 * 16, part = warp / 2; // this warp's first row in the block, and which 32 of the keys it takes
	w.template own<ROWS>(p, row0, own, part * 32, keys, q, down, (const half16 *)tiles + part / 2 * TILE, factors + part / 2 * FACTORS);
	__syncthreads();
	finish<D, 1, 2>(w, p, h, row0, shared);
}

extern "C" __global__ void __launch_bounds__(BLOCK, 1) prefill_once_64(const __grid_constant__ Prefill p) {
	begin(p.progress);
	prefillOnce<64>(p);
}
extern "C" __global__ void __launch_bounds__(BLOCK, 1) prefill_once_128(const __grid_constant__ Prefill p) {
	begin(p.progress);
	prefillOnce<128>(p);
}
#endif
