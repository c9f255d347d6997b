// variant_prefill and variant_softmax are attention, and the softmax of scores, of every variant: windows, padding, documents,
// allowed cells, softcap, biases, ALiBi and sinks (cudaops.Changes).
//
//   q, out         [heads, s, d]; of the softmax src (in q) and dst (in out), [heads, s, t]
//   k, v           [heads/group, t, d]
//   bias, allowed  [heads, s, t], with stride 0 where one row or head serves all, or null
//   sinks          [heads], or null
//   slopes         [heads], or null
//   intervals      [s, 2]: the columns that the mask shows row i, from the first up to but without the second
//   lse            [heads, s] (row stride 1), or null
//   empty          counts rows that see nothing, or null
//
// Nothing of a hidden column is read but its key, which goes nowhere. Softmax is online over tiles of 32 keys, and a tile's
// weighted values are added up by themselves first, as in prefill.cu.
//
// A block of 256 threads makes 32 query rows and 128 columns of the context, four rows a warp; a lane has one key of a tile, and
// then 4 columns. More columns are more blocks, which make the weights again: any head dim will do.
//
// Versions: 1. FFMA, for correct numbers; the fast kernels serve plain attention.

#pragma once

#include "softmax.cu"

struct Changed {
	Progress progress;
	View out, q, k, v, bias, allowed;
	float *sinks, *slopes, *lse;
	unsigned *intervals, *empty;
	i64 lseStride, diagonal;
	unsigned s, t, d, group;
	unsigned heads, rowBlocks;
	float scale, cap;
};

#define CHANGED_ROWS 32
#define CHANGED_KEYS 32
#define CHANGED_COLUMNS 128

// ChangedRow is what one row of scores sees, and what becomes of them.
struct ChangedRow {
	const float *bias, *allowed;
	unsigned lo, hi;
	i64 own;
	float cap, slope;
	__device__ __forceinline__ void find(const Changed &p, unsigned h, unsigned row, bool real) {
		lo = hi = 0;
		if (!real) return;
		lo = p.intervals[2 * (i64)row], hi = p.intervals[2 * (i64)row + 1];
		bias = p.bias.p ? at(p.bias, h, row) : nullptr;
		allowed = p.allowed.p ? at(p.allowed, h, row) : nullptr;
		own = row + p.diagonal;
		cap = p.cap;
		slope = p.slopes ? p.slopes[h] : 0;
	}
	__device__ __forceinline__ bool sees(unsigned j) const { return j >= lo && j < hi && (!allowed || allowed[j] != 0); }
	__device__ __forceinline__ float change(float x, unsigned j) const {
		if (cap != 0) x = cap * tanhf(x / cap);
		if (bias) x += bias[j];
		if (slope != 0) {
			i64 distance = (i64)j - own;
			x -= slope * (float)(distance < 0 ? -distance : distance);
		}
		return x;
	}
};

extern "C" __global__ void __launch_bounds__(BLOCK) variant_prefill(const __grid_constant__ Changed p) {
	begin(p.progress);
	constexpr int R = CHANGED_ROWS / (BLOCK / 32), C = CHANGED_COLUMNS / 32, SLICE = 32;
	__shared__ float qs[CHANGED_ROWS][SLICE + 1], ks[CHANGED_KEYS][SLICE + 1], weights[CHANGED_ROWS][CHANGED_KEYS];
	unsigned h = blockIdx.x / p.rowBlocks, row0 = blockIdx.x % p.rowBlocks * CHANGED_ROWS, column0 = blockIdx.y * CHANGED_COLUMNS;
	unsigned lane = threadIdx.x % 32, mine = threadIdx.x / 32 * R, kv = h / p.group;

	ChangedRow rows[R];
	float m[R], l[R], acc[R][C], seen[R];
#pragma unroll
	for (int r = 0; r < R; r++) {
		rows[r].find(p, h, row0 + mine + r, row0 + mine + r < p.s);
		m[r] = NEG_INF, l[r] = 0, seen[r] = 0;
#pragma unroll
		for (int c = 0; c < C; c++) acc[r][c] = 0;
	}
	unsigned first = p.t, end = 0; // what any row of the block sees
	for (unsigned i = 0; i < CHANGED_ROWS && row0 + i < p.s; i++) {
		unsigned lo = p.intervals[2 * (i64)(row0 + i)], hi = p.intervals[2 * (i64)(row0 + i) + 1];
		if (lo < hi) first = min(first, lo), end = max(end, hi);
	}

	for (i64 key0 = first; key0 < end; key0 += CHANGED_KEYS) {
		float x[R] = {};
		for (unsigned d0 = 0; d0 < p.d; d0 += SLICE) {
			__syncthreads(); // the slices and the weights before are read
			for (unsigned i = threadIdx.x; i < CHANGED_ROWS * SLICE; i += BLOCK) {
				unsigned r = i / SLICE, c = i % SLICE;
				bool in = d0 + c < p.d;
				qs[r][c] = in && row0 + r < p.s ? at(p.q, h, row0 + r)[d0 + c] : 0;
				ks[r][c] = in && key0 + r < p.t ? at(p.k, kv, key0 + r)[d0 + c] : 0;
			}
			__syncthreads();
			for (unsigned c = 0; c < SLICE && d0 + c < p.d; c++) {
				float key = ks[lane][c];
#pragma unroll
				for (int r = 0; r < R; r++) x[r] += qs[mine + r][c] * key;
			}
		}
		unsigned j = (unsigned)key0 + lane;
#pragma unroll
		for (int r = 0; r < R; r++) {
			bool sees = key0 + lane < p.t && rows[r].sees(j);
			float score = sees ? rows[r].change(p.scale * x[r], j) : NEG_INF;
			float top = fmaxf(m[r], Warp<32>::max(score)), shrink = expf(m[r] - base(top));
			float weight = sees ? expf(score - base(top)) : 0;
			l[r] = l[r] * shrink + Warp<32>::sum(weight);
			m[r] = top;
			if (sees) seen[r] = 1;
#pragma unroll
			for (int c = 0; c < C; c++) acc[r][c] *= shrink;
			weights[mine + r][lane] = sees ? weight : -1; // a key that is not seen takes no part, whatever its value
		}
		__syncwarp();
		float tile[R][C] = {};
		for (int i = 0; i < CHANGED_KEYS; i++) {
			float w[R];
			bool any = false;
#pragma unroll
			for (int r = 0; r < R; r++) {
				w[r] = weights[mine + r][i];
				any |= !(w[r] < 0); // NaN shows
			}
			if (!any) continue; // the same for all lanes
			const float *value = at(p.v, kv, key0 + i);
#pragma unroll
			for (int c = 0; c < C; c++) {
				unsigned column = column0 + c * 32 + lane;
				float v = column < p.d ? value[column] : 0;
#pragma unroll
				for (int r = 0; r < R; r++)
					if (!(w[r] < 0)) tile[r][c] += w[r] * v;
			}
		}
#pragma unroll
		for (int r = 0; r < R; r++)
#pragma unroll
			for (int c = 0; c < C; c++) acc[r][c] += tile[r][c];
	}

#pragma unroll
	for (int r = 0; r < R; r++) {
		unsigned row = row0 + mine + r;
		bool any = Warp<32>::max(seen[r]) != 0;
		if (row >= p.s) continue;
		if (p.sinks) {
			float sink = p.sinks[h], top = fmaxf(m[r], sink), shrink = expf(m[r] - base(top));
			l[r] = l[r] * shrink + expf(sink - base(top));
			m[r] = top;
#pragma unroll
			for (int c = 0; c < C; c++) acc[r][c] *= shrink;
		}
#pragma unroll
		for (int c = 0; c < C; c++) {
			unsigned column = column0 + c * 32 + lane;
			if (column < p.d) at(p.out, h, row)[column] = any ? acc[r][c] / l[r] : 0;
		}
		if (lane == 0 && blockIdx.y == 0) {
			if (p.lse) p.lse[h * p.lseStride + row] = m[r] == -NEG_INF ? m[r] : m[r] + logf(l[r]);
			if (p.empty && !any) atomicAdd(p.empty, 1u);
		}
	}
}

// A block makes a row: its maximum, its weights and their sum, then the probabilities, where each thread finds what it wrote.
extern "C" __global__ void __launch_bounds__(BLOCK) variant_softmax(const __grid_constant__ Changed p) {
	begin(p.progress);
	__shared__ float maxima[32], sums[32], counts[32];
	unsigned h = blockIdx.x / p.s, row = blockIdx.x % p.s;
	ChangedRow r;
	r.find(p, h, row, true);
	const float *src = at(p.q, h, row);
	float *dst = at(p.out, h, row);

	float sink = p.sinks ? p.sinks[h] : NEG_INF, top = NEG_INF, seen = 0;
	for (i64 j = r.lo + threadIdx.x; j < r.hi; j += BLOCK)
		if (r.sees(j)) top = fmaxf(top, r.change(src[j], j)), seen = 1;
	top = base(fmaxf(sink, Block<BLOCK>::max(top, maxima)));
	bool any = Block<BLOCK>::max(seen, counts) != 0;
	float sum = 0;
	for (i64 j = threadIdx.x; j < p.t; j += BLOCK) {
		float weight = 0;
		if (r.sees(j)) sum += weight = expf(r.change(src[j], j) - top);
		dst[j] = weight;
	}
	sum = Block<BLOCK>::sum(sum, sums);
	if (p.sinks) sum += expf(sink - top);
	for (i64 j = r.lo + threadIdx.x; j < r.hi; j += BLOCK)
		if (r.sees(j)) dst[j] *= 1 / sum;
	if (p.empty && !any && threadIdx.x == 0) atomicAdd(p.empty, 1u);
}
