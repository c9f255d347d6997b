// rope rotates the first 2*pairs columns of every row, pair i of row s by position(s) * frequency[i], and copies the rest.
//
//   dst, src   [heads, rows, cols], strides free
//   positions  [rows], or null: offset, offset+1, ...
//
// Sine and cosine are computed in float64, once for each (row, pair), and rounded to float; all heads share them. An
// angle is held in half turns, so that sincospi reduces it exactly and at the same cost at any position.
// A launch turns the pairs first .. first+count-1 (at most FREQUENCIES) of all.
//
// Versions, for 16384 rows of 32 heads of 128 on an H200: 1. table of a few rows in shared memory, each thread keeps its pairs' sine and
// cosine over the heads: 3.80 TB/s. 2. the first heads are on their way while the table is made: 3.89; no more heads a block than that: 3.94.

#include "common.cuh"

#define FREQUENCIES 256
#define TABLE 512

struct Rope {
	Progress progress;
	View dst, src;
	const int *positions;
	i64 offset;
	double magnitude;
	unsigned heads, rows, cols;
	unsigned pairs, first, count;  // all pairs, and those of this launch
	unsigned copyFrom;             // columns from here on are copied; cols where another launch does it
	unsigned rowsPerBlock;         // rowsPerBlock * count <= TABLE
	unsigned headsPerBlock;
	unsigned floatAngles;          // angle = float(position) * float(frequency), frequency in radians
	double frequency[FREQUENCIES]; // half turns a position, or radians
};

// Turn is one thread's share of a row: W pairs.
template <bool INTERLEAVED, int W> struct Turn;

template <> struct Turn<false, 4> { // pairs (i, i+pairs)
	float4 x, y;
	__device__ __forceinline__ void load(const float *row, unsigned i, unsigned pairs) {
		x = *(const float4 *)(row + i);
		y = *(const float4 *)(row + pairs + i);
	}
	__device__ __forceinline__ void store(float *row, unsigned i, unsigned pairs, const float2 *t) const {
		*(float4 *)(row + i) = make_float4(x.x * t[0].x - y.x * t[0].y, x.y * t[1].x - y.y * t[1].y,
		                                   x.z * t[2].x - y.z * t[2].y, x.w * t[3].x - y.w * t[3].y);
		*(float4 *)(row + pairs + i) = make_float4(y.x * t[0].x + x.x * t[0].y, y.y * t[1].x + x.y * t[1].y,
		                                           y.z * t[2].x + x.z * t[2].y, y.w * t[3].x + x.w * t[3].y);
	}
};
template <> struct Turn<true, 2> { // pairs (2i, 2i+1)
	float4 x;
	__device__ __forceinline__ void load(const float *row, unsigned i, unsigned) { x = *(const float4 *)(row + 2 * i); }
	__device__ __forceinline__ void store(float *row, unsigned i, unsigned, const float2 *t) const {
		*(float4 *)(row + 2 * i) = make_float4(x.x * t[0].x - x.y * t[0].y, x.y * t[0].x + x.x * t[0].y,
		                                       x.z * t[1].x - x.w * t[1].y, x.w * t[1].x + x.z * t[1].y);
	}
};
template <bool INTERLEAVED> struct Turn<INTERLEAVED, 1> {
	float x, y;
	__device__ __forceinline__ void load(const float *row, unsigned i, unsigned pairs) {
		x = row[INTERLEAVED ? 2 * i : i];
		y = row[INTERLEAVED ? 2 * i + 1 : pairs + i];
	}
	__device__ __forceinline__ void store(float *row, unsigned i, unsigned pairs, const float2 *t) const {
		row[INTERLEAVED ? 2 * i : i] = x * t[0].x - y * t[0].y;
		row[INTERLEAVED ? 2 * i + 1 : pairs + i] = y * t[0].x + x * t[0].y;
	}
};

// fillTable computes cosine and sine of every pair of the block's rows.
__device__ __forceinline__ void fillTable(const Rope &p, unsigned row0, float2 *table) {
	for (unsigned i = threadIdx.x; i < p.rowsPerBlock * p.count; i += BLOCK) {
		unsigned r = i / p.count, pair = i - r * p.count;
		if (row0 + r >= p.rows) break;
		i64 position = p.positions ? p.positions[row0 + r] : p.offset + row0 + r;
		double s, c;
		if (p.floatAngles)
			sincos((double)__fmul_rn((float)position, (float)p.frequency[pair]), &s, &c);
		else
			sincospi((double)position * p.frequency[pair], &s, &c);
		table[i] = make_float2((float)(c * p.magnitude), (float)(s * p.magnitude));
	}
}

// copyRest copies the columns that do not turn.
template <int V> __device__ __forceinline__ void copyRest(const Rope &p, unsigned row0, unsigned head0, unsigned heads) {
	unsigned cols = (p.cols - p.copyFrom) / V, n = cols * p.rowsPerBlock * heads;
	for (unsigned i = threadIdx.x; i < n; i += BLOCK) {
		unsigned row = i / cols, c = p.copyFrom + (i - row * cols) * V;
		unsigned h = row / p.rowsPerBlock, s = row0 + row - h * p.rowsPerBlock;
		if (s >= p.rows) continue;
		Chunk<V> x;
		x.load(at(p.src, head0 + h, s) + c);
		x.store(at(p.dst, head0 + h, s) + c);
	}
}

template <bool INTERLEAVED, int W, int V> __device__ __forceinline__ void rope(const Rope &p) {
	__shared__ float2 table[TABLE];
	unsigned row0 = blockIdx.x * p.rowsPerBlock, head0 = blockIdx.y * p.headsPerBlock;
	unsigned heads = min(p.headsPerBlock, p.heads - head0);

	// The threads form groups that cover a row; the groups share out rows first, then heads. The first heads are on their way while the
	// table is made.
	unsigned lanes = p.count / W, groups = BLOCK / lanes;
	unsigned group = threadIdx.x / lanes, lane = threadIdx.x - group * lanes, at0 = p.first + lane * W;
	unsigned r = group % p.rowsPerBlock, h = group / p.rowsPerBlock, step = groups / p.rowsPerBlock;
	if (h >= step || row0 + r >= p.rows) h = heads;
	Turn<INTERLEAVED, W> x[UNROLL];
	auto load = [&] {
#pragma unroll
		for (int u = 0; u < UNROLL; u++)
			if (h + u * step < heads) x[u].load(at(p.src, head0 + h + u * step, row0 + r), at0, p.pairs);
	};
	load();
	fillTable(p, row0, table);
	__syncthreads();
	float2 t[W];
#pragma unroll
	for (int w = 0; w < W; w++) t[w] = table[r * p.count + lane * W + w];
	while (h < heads) {
#pragma unroll
		for (int u = 0; u < UNROLL; u++)
			if (h + u * step < heads) x[u].store(at(p.dst, head0 + h + u * step, row0 + r), at0, p.pairs, t);
		h += UNROLL * step;
		load();
	}
	if (p.copyFrom < p.cols) copyRest<V>(p, row0, head0, heads);
}

extern "C" __global__ void __launch_bounds__(BLOCK) rope_half4(const __grid_constant__ Rope p) {
	begin(p.progress);
	rope<false, 4, 4>(p);
}
extern "C" __global__ void __launch_bounds__(BLOCK) rope_half1(const __grid_constant__ Rope p) {
	begin(p.progress);
	rope<false, 1, 1>(p);
}
extern "C" __global__ void __launch_bounds__(BLOCK) rope_inter4(const __grid_constant__ Rope p) {
	begin(p.progress);
	rope<true, 2, 4>(p);
}
extern "C" __global__ void __launch_bounds__(BLOCK) rope_inter1(const __grid_constant__ Rope p) {
	begin(p.progress);
	rope<true, 1, 1>(p);
}
