// halves writes keys and values as tensor cores take them (tensor.cuh): in tiles of 64 keys. Of a tile, the keys are 128 rows of D, hi and then lo,
// and so are the values, both laid out by place. Keys have a scale for each row, values one for each column of a tile; what brings them back are
// the tile's factors. reach is the largest |key| of a tile, or +Inf where the pairs do not hold the tile to f32 accuracy: a number that is
// not finite, keys from 2^80 on, a column of values in which one that is not 0 is below 2^-30 of the largest. A tile is sparse where a column
// has one, 0 or not, below 2^-22 of its largest.
//
//   k, v  [kv heads, t, d], d at most D
//
// A block of 256 threads makes a tile. Bound by memory: it reads 8 bytes and writes 8 for each pair of elements.
//
// Versions: 1. this.

#pragma once

#include "tensor.cuh"

struct Halves {
	Progress progress;
	View k, v;
	half16 *tiles;  // [kv heads, count, 2, 128*D]
	float *factors; // [kv heads, count, 64 keys, D columns, and: is it sparse, 0 0 0]
	float *reach;   // [kv heads, count]
	unsigned t, d, count;
	int vec; // as for prefill
};

#ifdef TENSOR

template <int D> struct HalvesBlock {
	static constexpr int LANES = D / 4, ROWS = BLOCK / LANES, N = TILE_KEYS / ROWS; // a thread takes 4 columns of N rows
	float4 x[N];

	__device__ __forceinline__ void load(const View &m, unsigned kv, unsigned key0, unsigned t, int d, bool vec) {
#pragma unroll
		for (int i = 0; i < N; i++) {
			unsigned key = key0 + threadIdx.x / LANES + i * ROWS;
			x[i] = make_float4(0, 0, 0, 0);
			if (key < t) x[i] = load4(at(m, kv, key), threadIdx.x % LANES * 4, d, vec);
		}
	}

	// store writes row i, scaled, to hi and lo.
	__device__ __forceinline__ void store(half16 *to, int i, float4 up) const {
		int c = threadIdx.x % LANES * 4, row = threadIdx.x / LANES + i * ROWS;
		uint2 h, l;
		halve(x[i].x * up.x, x[i].y * up.y, h.x, l.x);
		halve(x[i].z * up.z, x[i].w * up.w, h.y, l.y);
		to += place(row, c / 8, 2 * TILE_KEYS) + c % 8;
		*(uint2 *)to = h;
		*(uint2 *)(to + TILE_LO) = l;
	}
};

// HalvesTile is a tile on its way from keys and values to pairs.
template <int D> struct HalvesTile {
	using Block = HalvesBlock<D>;
	Block k, v;

	// load takes it from p, a Halves or a Prefill.
	template <class P> __device__ __forceinline__ void load(const P &p, unsigned kv, unsigned tile) {
		k.load(p.k, kv, tile * TILE_KEYS, p.t, p.d, p.vec);
		v.load(p.v, kv, tile * TILE_KEYS, p.t, p.d, p.vec);
	}

	// make writes the pairs and the factors of a tile of which the first keys are there, and returns its reach.
	__device__ __forceinline__ float make(half16 *to, float *factors, int keys) const {
		constexpr int LANES = Block::LANES, ROWS = Block::ROWS;
		__shared__ __align__(16) float highest[ROWS][D];
		__shared__ __align__(16) float lowest[ROWS][D]; // but for 0
		__shared__ float reaches[BLOCK / 32], sparses[BLOCK / 32];
		__shared__ unsigned zeros[ROWS][LANES]; // a byte a column
		int lane = threadIdx.x % LANES, first = threadIdx.x / LANES;
		float reach = 0;
#pragma unroll
		for (int i = 0; i < Block::N; i++) {
			float4 x = k.x[i];
			float most = Warp<LANES>::max(fmaxf(fmaxf(magnitude(x.x), magnitude(x.y)), fmaxf(magnitude(x.z), magnitude(x.w))));
			reach = fmaxf(reach, most);
			Scaling s(most);
			k.store(to, i, make_float4(s.up, s.up, s.up, s.up));
			if (lane == 0) factors[first + i * ROWS] = s.down;
		}
		if (reach >= __int_as_float((127 + 80) << 23)) reach = -NEG_INF;

		float high[4] = {}, low[4] = {-NEG_INF, -NEG_INF, -NEG_INF, -NEG_INF}, sparse = 0;
		bool zero[4] = {};
#pragma unroll
		for (int i = 0; i < Block::N; i++) {
			float x[4] = {magnitude(v.x[i].x), magnitude(v.x[i].y), magnitude(v.x[i].z), magnitude(v.x[i].w)};
			bool there = first + i * ROWS < keys;
#pragma unroll
			for (int j = 0; j < 4; j++) {
				high[j] = fmaxf(high[j], x[j]);
				if (x[j] > 0) low[j] = fminf(low[j], x[j]);
				zero[j] |= there && x[j] == 0;
			}
		}
		*(float4 *)&highest[first][lane * 4] = make_float4(high[0], high[1], high[2], high[3]);
		*(float4 *)&lowest[first][lane * 4] = make_float4(low[0], low[1], low[2], low[3]);
		zeros[first][lane] = zero[0] | zero[1] << 8 | zero[2] << 16 | zero[3] << 24;
		__syncthreads();
		unsigned all = 0;
#pragma unroll
		for (int r = 0; r < ROWS; r++) {
			float4 h = *(const float4 *)&highest[r][lane * 4], l = *(const float4 *)&lowest[r][lane * 4];
			high[0] = fmaxf(high[0], h.x), high[1] = fmaxf(high[1], h.y), high[2] = fmaxf(high[2], h.z), high[3] = fmaxf(high[3], h.w);
			low[0] = fminf(low[0], l.x), low[1] = fminf(low[1], l.y), low[2] = fminf(low[2], l.z), low[3] = fminf(low[3], l.w);
			all |= zeros[r][lane];
		}
		float up[4], down[4];
#pragma unroll
		for (int j = 0; j < 4; j++) {
			Scaling s(high[j]);
			up[j] = s.up;
			down[j] = s.down;
			if (high[j] == 0) continue;
			if (all >> 8 * j & 1 || low[j] < high[j] * 2.384185791e-7f) sparse = 1;                                              // 2^-22
			bool holds = low[j] >= high[j] * 9.313225746e-10f && high[j] >= 7.888609052e-31f && high[j] < -NEG_INF; // 2^-30, 2^-100
			if (!holds) reach = -NEG_INF;
		}
		if (first == 0) *(float4 *)&factors[TILE_KEYS + lane * 4] = make_float4(down[0], down[1], down[2], down[3]);
#pragma unroll
		for (int i = 0; i < Block::N; i++) v.store(to + 2 * TILE_KEYS * D, i, make_float4(up[0], up[1], up[2], up[3]));

		reach = Warp<32>::max(reach);
		sparse = Warp<32>::max(sparse);
		if (threadIdx.x % 32 == 0) reaches[threadIdx.x / 32] = reach, sparses[threadIdx.x / 32] = sparse;
		__syncthreads();
#pragma unroll
		for (int i = 0; i < BLOCK / 32; i++) reach = fmaxf(reach, reaches[i]), sparse = fmaxf(sparse, sparses[i]);
		if (threadIdx.x == 0) *(float4 *)&factors[TILE_KEYS + D] = make_float4(sparse, 0, 0, 0);
		return reach;
	}
};

template <int D> __device__ __forceinline__ void halves(const Halves &p) {
	i64 at = (i64)blockIdx.y * p.count + blockIdx.x;
	HalvesTile<D> tile;
	tile.load(p, blockIdx.y, blockIdx.x);
	float reach = tile.make(p.tiles + at * (4 * TILE_KEYS * D), p.factors + at * (TILE_KEYS + D + 4), (int)(p.t - blockIdx.x * TILE_KEYS));
	if (threadIdx.x == 0) p.reach[at] = reach;
}

extern "C" __global__ void __launch_bounds__(BLOCK) halves_64(const __grid_constant__ Halves p) {
	begin(p.progress);
	halves<64>(p);
}
extern "C" __global__ void __launch_bounds__(BLOCK) halves_128(const __grid_constant__ Halves p) {
	begin(p.progress);
	halves<128>(p);
}
#endif
