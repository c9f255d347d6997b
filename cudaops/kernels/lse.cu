// lse writes the natural log of each row's sum of exp(scale * q.k): prefill without the values.
//
//   q    [heads, s, d]
//   k    [heads/group, t, d]
//   out  [heads, s]
//
// A thread keeps the maximum and the sum, in f64, of its own share of each of its rows, and the four of a row join at the end. So nothing passes
// between threads on the way. Where the keys are shared out, among blocks or among launches, a block leaves maximum and sum for lse_join.
//
// Versions: 1. this (FFMA here, tensor cores in cells_warpgroup.cu).

#pragma once

#include "cells.cuh"

struct LseJoin {
	Progress progress;
	const float *parts; // [slots, rows, 2]: maximum and sum
	float *out, *state; // one of them is null: [heads, s], or the first slot
	i64 stride;         // of out, from head to head
	u64 rows;           // heads * s
	unsigned s, from, to, reserved; // slots
};

// logOfSum is m + log(l); +Inf and -Inf where a term is +Inf, or none is more than -Inf.
__device__ __forceinline__ float logOfSum(float m, float l) { return isinf(m) && (m > 0 || l == l) ? m : m + logf(l); }

// Summed takes tiles in (cells.cuh).
struct Summed {
	const Cells &p;
	CellRows rows;
	float m[2];
	double l[2];

	__device__ __forceinline__ Summed(const Cells &cells, unsigned tile) : p(cells) {
		rows.find(p, tile);
		m[0] = m[1] = NEG_INF;
		l[0] = l[1] = 0;
	}

	__device__ __forceinline__ void tile(float (&x)[64], unsigned key0) {
		unsigned n = key0 / CELL_KEYS;
		if (n >= rows.some) return;
		if (n >= rows.whole)
#pragma unroll
			for (int i = 0; i < 64; i++)
				if (key0 + i / 4 * 8 + threadIdx.x % 4 * 2 + (i & 1) >= rows.seen[i / 2 % 2]) x[i] = NEG_INF;
		float most[2] = {m[0], m[1]}, sum[2] = {};
#pragma unroll
		for (int i = 0; i < 64; i++) most[i / 2 % 2] = fmaxf(most[i / 2 % 2], x[i]);
		float from[2] = {base(most[0]), base(most[1])};
#pragma unroll
		for (int i = 0; i < 64; i++) sum[i / 2 % 2] += power2((x[i] - from[i / 2 % 2]) * LOG2_E);
#pragma unroll
		for (int r = 0; r < 2; r++) {
			l[r] = l[r] * power2((m[r] - from[r]) * LOG2_E) + sum[r];
			m[r] = most[r];
		}
	}

	__device__ __forceinline__ void end(unsigned h, float *out, i64 stride) {
#pragma unroll
		for (int r = 0; r < 2; r++) {
			float most = Warp<4>::max(m[r]), sum = Warp<4>::sum((float)l[r] * power2((m[r] - base(most)) * LOG2_E));
			if (threadIdx.x % 4 != 0 || rows.row[r] < 0) continue;
			if (out)
				out[h * stride + rows.row[r]] = logOfSum(most, sum);
			else
				*(float2 *)(p.parts + (((i64)(p.slot + blockIdx.z) * gridDim.y + h) * p.s + rows.row[r]) * 2) = make_float2(most, sum);
		}
	}
};

// lseKeys are the keys that a block takes: from up to to.
__device__ __forceinline__ void lseKeys(const Cells &p, unsigned tile, unsigned &from, unsigned &to) {
	unsigned seen = lastSeen(p, tile);
	from = blockIdx.z * p.perBlock;
	to = min(seen, from + p.perBlock);
}

// lseBlock makes a block's share in FFMA.
__device__ __forceinline__ void lseBlock(const Cells &p, CellSlices &shared, unsigned tile, unsigned h) {
	unsigned from, to;
	lseKeys(p, tile, from, to);
	Summed sum(p, tile);
	if (from < to) plainCells(p, shared, tile, h, from, to, sum);
	sum.end(h, p.out, p.lseStride);
}

extern "C" __global__ void __launch_bounds__(BLOCK, 2) lse(const __grid_constant__ Cells p) {
	begin(p.progress);
	__shared__ __align__(16) CellSlices shared;
	lseBlock(p, shared, gridDim.x - 1 - blockIdx.x, blockIdx.y); // late rows, which see most, come first
}

extern "C" __global__ void __launch_bounds__(BLOCK) lse_join(const __grid_constant__ LseJoin p) {
	begin(p.progress);
	u64 row = (u64)blockIdx.x * BLOCK + threadIdx.x;
	if (row >= p.rows) return;
	float m = NEG_INF;
	double l = 0;
	for (unsigned slot = p.from; slot < p.to; slot++) m = fmaxf(m, p.parts[(slot * p.rows + row) * 2]);
	for (unsigned slot = p.from; slot < p.to; slot++) {
		float2 x = *(const float2 *)(p.parts + (slot * p.rows + row) * 2);
		l += x.y * power2((x.x - base(m)) * LOG2_E);
	}
	if (p.out)
		p.out[row / p.s * p.stride + row % p.s] = logOfSum(m, (float)l);
	else
		*(float2 *)(p.state + row * 2) = make_float2(m, (float)l);
}
