// pool writes scores, or probabilities exp(score - lse), pooled: each cell of the result is the sum, mean, maximum or minimum of the visible
// cells of its pool. Neither scores nor probabilities reach memory.
//
//   q    [heads, s, d]
//   k    [heads/group, t, d]
//   lse  [heads, s], or null
//   out  [heads, rowPools, colPools]
//
// A warp leaves one part for each group of rows (cells.cuh) and each unit of keys, and pool_join makes results of parts; nothing else passes
// between warps. Where pools are narrow, a part is a key's: then the rows of a group are reduced first. Where they are wide, each thread adds up
// its own cells of a tile, then tiles in f64, and the warp joins at the end of a unit: no chain of roundings in f32 is longer than 32 + 5. Parts
// that nothing visible belongs to are neither written nor read.
//
// The largest probability is that of the largest score - lse: so extremes are taken of these, negated for the smallest, and one exponential is
// left to pool_join.
//
// Versions: 1. this (FFMA here, tensor cores in cells_warpgroup.cu).

#pragma once

#include "cells.cuh"

struct PoolJoin {
	Progress progress;
	const float *parts; // [heads, pieces, columns]
	View out;
	i64 diagonal;
	u64 cells;                                          // results to make
	unsigned heads, s, t;
	unsigned rowPools, rowParts, rowGroup, pieces;
	unsigned colPools, colParts, unit0, units, columns; // units 0: a part a key
	unsigned first, pool0, pools;                       // first key of the parts; pools of keys to make
	unsigned lanes;                                     // threads to a result: 1, 2, 4 ... 256
	int extreme, mean, probabilities, causal;
};

// Pooled takes tiles in (cells.cuh).
struct Pooled {
	const Cells &p;
	CellRows rows;
	float lse[2];
	double total[2];
	u64 unit, end;
	unsigned from, to; // keys of the unit
	unsigned rest;     // of colPools, by which its end is above to (edge)
	i64 parts[2];      // of the groups that this thread stores; -1: none

	__device__ __forceinline__ Pooled(const Cells &cells, unsigned tile, unsigned h) : p(cells) {
		rows.find(p, tile);
		unsigned columns = p.units ? p.units : p.keys, size = min(p.rowGroup, 8u), quad = threadIdx.x % 32 / 4;
#pragma unroll
		for (int r = 0; r < 2; r++) {
			lse[r] = rows.row[r] < 0 || !p.lse ? 0 : p.lse[h * p.lseStride + rows.row[r]];
			if (lse[r] == -NEG_INF) lse[r] = __int_as_float(0x7fc00000); // NaN
			u64 group = ((u64)tile * CELL_ROWS + threadIdx.x / 32 * 16 + quad + 8 * r) / p.rowGroup;
			parts[r] = group < p.pieces && quad % size == 0 && (r == 0 || p.rowGroup < 16) ? (i64)(((u64)h * p.pieces + group) * columns) : -1;
		}
		if (!p.units) return;
		unit = p.unit0 + (u64)blockIdx.z * p.perBlock;
		end = min(unit + p.perBlock, (u64)p.unit0 + p.units);
		from = start(unit);
		to = start(unit + 1);
		rest = (unsigned)((unit + 1) * (p.t % p.colPools) % p.colPools);
		clear();
	}

	// next goes on to the next unit: without a division where units are pools.
	__device__ __forceinline__ void next() {
		unit++;
		from = to;
		if (p.colParts > 1) {
			to = start(unit + 1);
			return;
		}
		to += p.t / p.colPools;
		u64 more = (u64)rest + p.t % p.colPools;
		if (more >= p.colPools) more -= p.colPools, to++;
		rest = (unsigned)more;
	}

	__device__ __forceinline__ unsigned start(u64 unit) const { return (unsigned)(unitStart(unit, p.t, p.colPools, p.colParts) - p.first); }
	__device__ __forceinline__ void clear() { total[0] = total[1] = p.extreme ? NEG_INF : 0; }

	// joined reduces the rows of each group; of four lanes that have the same row, one has all of x where QUADS.
	template <bool QUADS> __device__ __forceinline__ void joined(float (&x)[2]) const {
		for (unsigned d = QUADS ? 1 : 4; d < 4 * min(p.rowGroup, 8u); d *= 2)
#pragma unroll
			for (int r = 0; r < 2; r++) {
				float y = __shfl_xor_sync(~0u, x[r], d);
				x[r] = p.extreme ? extremeOf(x[r], y) : x[r] + y;
			}
		if (p.rowGroup == 16) x[0] = p.extreme ? extremeOf(x[0], x[1]) : x[0] + x[1];
	}

	// flush stores what the unit has come to.
	__device__ __forceinline__ void flush() {
		float x[2] = {(float)total[0], (float)total[1]};
		joined<true>(x);
		if (threadIdx.x % 4 == 0)
#pragma unroll
			for (int r = 0; r < 2; r++)
				if (parts[r] >= 0) p.parts[parts[r] + (i64)(unit - p.unit0)] = x[r];
		clear();
	}

	// values makes of scores what is pooled, and of those that are hidden what changes nothing.
	__device__ __forceinline__ void values(float (&x)[64], unsigned key0) const {
		if (p.extreme) {
			float sign = p.extreme;
#pragma unroll
			for (int i = 0; i < 64; i++) x[i] = (x[i] - lse[i / 2 % 2]) * sign;
		} else if (p.lse)
#pragma unroll
			for (int i = 0; i < 64; i++) x[i] = power2((x[i] - lse[i / 2 % 2]) * LOG2_E);
		if (key0 / CELL_KEYS < rows.whole) return;
		float none = p.extreme ? NEG_INF : 0;
#pragma unroll
		for (int i = 0; i < 64; i++)
			if (key0 + column(i) >= rows.seen[i / 2 % 2]) x[i] = none;
	}

	static __device__ __forceinline__ unsigned column(int i) { return i / 4 * 8 + threadIdx.x % 4 * 2 + (i & 1); }

	// take adds the cells of a tile whose columns are from up to to of it.
	template <bool WHOLE> __device__ __forceinline__ void take(const float (&x)[64], unsigned from, unsigned to) {
		if (p.extreme) {
			float most[2] = {NEG_INF, NEG_INF};
#pragma unroll
			for (int i = 0; i < 64; i++)
				if (WHOLE || column(i) >= from && column(i) < to) most[i / 2 % 2] = extremeOf(most[i / 2 % 2], x[i]);
#pragma unroll
			for (int r = 0; r < 2; r++) total[r] = extremeOf((float)total[r], most[r]);
		} else {
			float sum[2] = {};
#pragma unroll
			for (int i = 0; i < 64; i++)
				if (WHOLE || column(i) >= from && column(i) < to) sum[i / 2 % 2] += x[i];
#pragma unroll
			for (int r = 0; r < 2; r++) total[r] += sum[r];
		}
	}

	__device__ __forceinline__ void tile(float (&x)[64], unsigned key0) {
		// What most tiles of a long picture are, without a detour of the cells through registers: probabilities that are all seen, of one unit.
		if (p.lse && !p.extreme && p.units && key0 / CELL_KEYS < rows.whole && from <= key0 && to >= key0 + CELL_KEYS && unit < end) {
			float sum[2][2] = {};
#pragma unroll
			for (int i = 0; i < 64; i++) sum[i / 2 % 2][i & 1] += power2((x[i] - lse[i / 2 % 2]) * LOG2_E);
#pragma unroll
			for (int r = 0; r < 2; r++) total[r] += sum[r][0] + sum[r][1];
			if (to > key0 + CELL_KEYS) return;
			flush();
			next();
			return;
		}
		bool sees = key0 / CELL_KEYS < rows.some;
		if (sees) values(x, key0);
		if (!p.units) {
			if (sees) storeKeys(x, key0);
			return;
		}
		while (unit < end) {
			if (sees) {
				unsigned a = from > key0 ? from - key0 : 0, b = min(to - key0, (unsigned)CELL_KEYS);
				if (a == 0 && b == CELL_KEYS)
					take<true>(x, a, b);
				else
					take<false>(x, a, b);
			}
			if (to > key0 + CELL_KEYS) return;
			flush();
			next();
			if (from == key0 + CELL_KEYS) return;
		}
	}

	// storeKeys stores a part for each key of a tile.
	__device__ __forceinline__ void storeKeys(const float (&x)[64], unsigned key0) const {
#pragma unroll
		for (int n = 0; n < 16; n++)
#pragma unroll
			for (int e = 0; e < 2; e++) {
				float y[2] = {x[4 * n + e], x[4 * n + 2 + e]};
				joined<false>(y);
				unsigned key = key0 + column(4 * n + e);
#pragma unroll
				for (int r = 0; r < 2; r++)
					if (parts[r] >= 0 && key < p.keys) p.parts[parts[r] + key] = y[r];
			}
	}

	// finish stores the unit that what the rows see ends in.
	__device__ __forceinline__ void finish() {
		if (p.units && unit < end) flush();
	}
};

// poolKeys are the keys that a block takes: from the multiple of CELL_KEYS from up to to.
__device__ __forceinline__ void poolKeys(const Cells &p, unsigned tile, unsigned &from, unsigned &to) {
	unsigned seen = lastSeen(p, tile);
	u64 begin = (u64)blockIdx.z * p.perBlock, end = begin + p.perBlock;
	if (p.units) {
		begin = unitStart(p.unit0 + begin, p.t, p.colPools, p.colParts) - p.first;
		end = unitStart(p.unit0 + min(end, (u64)p.units), p.t, p.colPools, p.colParts) - p.first;
	}
	from = (unsigned)begin;
	to = (unsigned)min((u64)seen, end);
	if (from < to) from = from / CELL_KEYS * CELL_KEYS;
}

// poolBlock makes a block's share in FFMA.
__device__ __forceinline__ void poolBlock(const Cells &p, CellSlices &shared, unsigned tile, unsigned h) {
	unsigned from, to;
	poolKeys(p, tile, from, to);
	if (from >= to) return;
	Pooled pooled(p, tile, h);
	plainCells(p, shared, tile, h, from, to, pooled);
	pooled.finish();
}

extern "C" __global__ void __launch_bounds__(BLOCK, 2) pool(const __grid_constant__ Cells p) {
	begin(p.progress);
	__shared__ __align__(16) CellSlices shared;
	poolBlock(p, shared, gridDim.x - 1 - blockIdx.x, blockIdx.y); // late rows, which see most, come first
}
