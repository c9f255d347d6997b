// What lse and pool share: the scores scale * q.k of many rows, tile by tile, none of which reaches memory.
//
// A block of 256 threads makes 128 rows of 128 keys at a time; a warp makes 16 of the rows. Which rows these are is the business of
// slots: rows that belong together (a pool's) are cut into groups of up to rowGroup, and slot after slot holds a group's rows, or nothing
// where the group has fewer. A thread has rows l/4 and l/4+8 of its warp's 16, and keys 2(l%4) and the next of each 8, which is where tensor
// cores leave their products: so what follows a tile is the same for both ways to make it.
#pragma once

#include "tensor.cuh"

typedef unsigned long long u64;

struct Cells {
	Progress progress;
	View q, k;        // of k, the keys from first on
	const float *lse;   // [heads, s], for probabilities, or null, for scores
	float *out, *parts; // of lse, with the stride of the former; one of them is null
	i64 lseStride, diagonal;
	unsigned s, t, d, group;  // t: all keys
	unsigned first, keys;     // how many are taken now, from which key on
	unsigned rowPools, rowParts, rowGroup, pieces; // pools of rows, groups of each, rows of a group (1, 2, 4, 8 or 16), groups in all
	unsigned colPools, colParts, unit0, units;     // a unit is one of colParts of a pool of keys; units 0: each key by itself
	unsigned perBlock;        // units, or keys
	float scale;
	int extreme;              // 1: the largest; -1: the smallest; 0: the sum
	int causal, vec, slot;
};

#define CELL_ROWS 128
#define CELL_KEYS 128
#define LOG2_E 1.44269504088896341f

// edge is where part i of h begins in n (plan.Edge).
__device__ __forceinline__ i64 edge(u64 i, unsigned n, unsigned h) {
	return i * (n / h) + i * (n % h) / h;
}

// groupRows gives the rows of a group: from up to to, none where to <= from.
__device__ __forceinline__ void groupRows(u64 group, unsigned s, unsigned pools, unsigned parts, unsigned size, i64 &from, i64 &to) {
	u64 pool = group / parts;
	from = to = 0;
	if (pool >= pools) return;
	i64 end = edge(pool + 1, s, pools);
	from = edge(pool, s, pools) + (i64)(group - pool * parts) * size;
	to = from + size < end ? from + size : end;
}

// unitStart is the first key of a unit.
__device__ __forceinline__ i64 unitStart(u64 unit, unsigned t, unsigned pools, unsigned parts) {
	if (parts == 1) return edge(unit, t, pools);
	u64 pool = unit / parts;
	i64 from = edge(pool, t, pools);
	return from + edge(unit - pool * parts, (unsigned)(edge(pool + 1, t, pools) - from), parts);
}

// extremeOf is the larger of two, NaN where one is.
__device__ __forceinline__ float extremeOf(float a, float b) { return b > a || b != b ? b : a; }

// What a thread knows of its two rows. Keys count from first.
struct CellRows {
	i64 row[2];       // -1: none
	unsigned seen[2]; // keys that it sees
	float whole, some; // tiles, from the first on, that all rows of the warp see all of; of which some row sees something

	__device__ __forceinline__ void find(const Cells &p, unsigned tile) {
		float least = 0, most = 0;
#pragma unroll
		for (int r = 0; r < 2; r++) {
			u64 slot = (u64)tile * CELL_ROWS + threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4 + 8 * r;
			i64 from, to, at = slot % p.rowGroup;
			groupRows(slot / p.rowGroup, p.s, p.rowPools, p.rowParts, p.rowGroup, from, to);
			row[r] = from + at < to ? from + at : -1;
			i64 n = row[r] < 0 ? 0 : visible(row[r], p.t, p.causal, p.diagonal) - p.first;
			seen[r] = n < 0 ? 0 : n < p.keys ? (unsigned)n : p.keys;
			float full = seen[r] / CELL_KEYS;
			least = r == 0 ? full : fminf(least, full);
			most = fmaxf(most, (float)((seen[r] + (u64)CELL_KEYS - 1) / CELL_KEYS));
		}
		whole = -Warp<32>::max(-least);
		some = Warp<32>::max(most);
	}
};

// lastSeen is how many keys the rows of a tile see at most.
__device__ __forceinline__ unsigned lastSeen(const Cells &p, unsigned tile) {
	u64 per = CELL_ROWS / p.rowGroup, group = tile * per + per - 1;
	if (group >= p.pieces) group = p.pieces - 1;
	i64 end = edge(group / p.rowParts + 1, p.s, p.rowPools), from, to;
	groupRows(group, p.s, p.rowPools, p.rowParts, p.rowGroup, from, to);
	i64 n = visible((from < to ? to : end) - 1, p.t, p.causal, p.diagonal) - p.first;
	return n < 0 ? 0 : n < p.keys ? (unsigned)n : p.keys;
}

#define CELL_SLICE 16

// CellSlices is what plainCells keeps in shared memory. Rows are padded so that those that a warp reads together lie in other banks.
struct CellSlices {
	float a[2][CELL_ROWS][CELL_SLICE + 4], b[2][CELL_KEYS][CELL_SLICE + 4];
};

// plainCells makes the tiles of keys from up to to in FFMA and gives each to sink.tile. Slices of 16 of d pass through shared memory, two at
// a time. For every 4 of d a thread reads 34 chunks for 256 products, of which lanes share what they read.
template <class Sink> __device__ __forceinline__ void plainCells(const Cells &p, CellSlices &shared, unsigned tile, unsigned h, unsigned from,
                                                                 unsigned to, Sink &sink) {
	constexpr int N = CELL_ROWS * CELL_SLICE / 4 / BLOCK;
	int warp = threadIdx.x / 32, lane = threadIdx.x % 32, c = threadIdx.x % (CELL_SLICE / 4) * 4, in = threadIdx.x / (CELL_SLICE / 4);
	const float *rows[N];
#pragma unroll
	for (int i = 0; i < N; i++) {
		u64 slot = (u64)tile * CELL_ROWS + in + i * (BLOCK / (CELL_SLICE / 4));
		i64 begin, end;
		groupRows(slot / p.rowGroup, p.s, p.rowPools, p.rowParts, p.rowGroup, begin, end);
		begin += slot % p.rowGroup;
		rows[i] = begin < end ? at(p.q, h, begin) : nullptr;
	}
	unsigned kv = h / p.group, slices = (p.d + CELL_SLICE - 1) / CELL_SLICE;
	float4 a[N], b[N];
	auto load = [&](unsigned key0, unsigned k0) {
#pragma unroll
		for (int i = 0; i < N; i++) {
			unsigned key = key0 + in + i * (BLOCK / (CELL_SLICE / 4));
			a[i] = b[i] = make_float4(0, 0, 0, 0);
			if (rows[i]) a[i] = load4(rows[i], k0 + c, p.d, p.vec);
			if (key < to) b[i] = load4(at(p.k, kv, key), k0 + c, p.d, p.vec);
		}
	};
	auto store = [&](int now) {
#pragma unroll
		for (int i = 0; i < N; i++) {
			*(float4 *)&shared.a[now][in + i * (BLOCK / (CELL_SLICE / 4))][c] = a[i];
			*(float4 *)&shared.b[now][in + i * (BLOCK / (CELL_SLICE / 4))][c] = b[i];
		}
	};
	int now = 0;
	load(from, 0);
	store(0);
	__syncthreads();
	for (unsigned key0 = from; key0 < to; key0 += CELL_KEYS) {
		float cell[64];
#pragma unroll
		for (int i = 0; i < 64; i++) cell[i] = 0;
		bool sees = key0 / CELL_KEYS < sink.rows.some;
		for (unsigned slice = 0; slice < slices; slice++) {
			bool last = slice + 1 == slices, more = !last || key0 + CELL_KEYS < to;
			if (more) load(last ? key0 + CELL_KEYS : key0, last ? 0 : (slice + 1) * CELL_SLICE);
			if (sees)
#pragma unroll
				for (int k = 0; k < CELL_SLICE; k += 4) {
					float4 x = *(float4 *)&shared.a[now][warp * 16 + lane / 4][k], y = *(float4 *)&shared.a[now][warp * 16 + lane / 4 + 8][k];
#pragma unroll
					for (int n = 0; n < 16; n++)
#pragma unroll
						for (int e = 0; e < 2; e++) {
							float4 z = *(float4 *)&shared.b[now][n * 8 + lane % 4 * 2 + e][k];
							float &u = cell[4 * n + e], &v = cell[4 * n + 2 + e];
							u += x.x * z.x, u += x.y * z.y, u += x.z * z.z, u += x.w * z.w;
							v += y.x * z.x, v += y.y * z.y, v += y.z * z.z, v += y.w * z.w;
						}
				}
			now ^= 1;
			if (more) store(now);
			__syncthreads();
		}
		if (sees)
#pragma unroll
			for (int i = 0; i < 64; i++) cell[i] *= p.scale;
		sink.tile(cell, key0);
	}
}
