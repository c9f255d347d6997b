// prefill writes softmax(scale * q k^T, mask) v for many queries, without the matrix of scores in memory.
//
//   q, out  [heads, s, d]
//   k, v    [heads/group, t, d]
//   lse     [heads, s] (row stride 1), or null
//
// Query row i sees keys 0 .. i+diagonal. Online softmax over tiles of 64 keys (Milakov and Gimelshein, arXiv 1805.02867;
// Dao, arXiv 2307.08691): a row keeps its maximum m, the sum l of exp(s-m), and the weighted sum of the values. A tile's
// own weighted sum is made first and then added, so that no chain of roundings is longer than 64 plus the number of tiles.
// Tiles that no row of the block sees are skipped; in a tile that only some see, a hidden pair is left out of every
// sum, so that a NaN in a hidden key or value goes nowhere.
//
// A block of 256 threads as 16 x 16 makes 16*R query rows. Thread (ty, tx) has rows ty*R .. ty*R+R-1, keys tx + 16 j
// of a tile and, of each slice of C columns of the values, columns tx*C/16 and on. Shared memory holds the queries, the
// tile's weights, and one slice of keys or values; the next slice waits in registers.
//
// Versions: 1. FFMA; R 8, 4 or 2 by head dim and shared memory.

#pragma once

#include "common.cuh"

struct Prefill {
	Progress progress;
	View out, q, k, v;
	float *lse;
	i64 lseStride; // elements from head to head
	i64 diagonal;
	unsigned s, t, d, group;
	float scale;
	int causal;
	int vec; // every row begins at a multiple of 16 bytes and d is a multiple of 4
	int reserved;
};

#define KEYS 64

// Columns of a slice for head dim D.
template <int D> struct Columns { static constexpr int N = D % 64 == 0 ? 64 : D % 32 == 0 ? 32 : 16; };

// Panel is a slice [KEYS, C] of keys or values on its way from memory through registers to shared memory.
template <int C> struct Panel {
	static constexpr int N = KEYS * C / 4 / BLOCK > 0 ? KEYS * C / 4 / BLOCK : 1;
	float4 x[N];
	__device__ __forceinline__ void load(const View &m, i64 head, unsigned key0, unsigned keys, int c0, int d, bool vec) {
#pragma unroll
		for (int i = 0; i < N; i++) {
			unsigned t = i * BLOCK + threadIdx.x, key = key0 + t / (C / 4);
			int c = c0 + t % (C / 4) * 4;
			x[i] = make_float4(0, 0, 0, 0);
			if (t < KEYS * C / 4 && key < keys) x[i] = load4(at(m, head, key), c, d, vec);
		}
	}
	__device__ __forceinline__ void store(float *panel) const {
#pragma unroll
		for (int i = 0; i < N; i++) {
			unsigned t = i * BLOCK + threadIdx.x;
			if (t < KEYS * C / 4) *(float4 *)(panel + t / (C / 4) * (C + 4) + t % (C / 4) * 4) = x[i];
		}
	}
};

template <int D, int R> struct PrefillTile {
	static constexpr int ROWS = 16 * R, C = Columns<D>::N, SLICES = D / C, W = C / 16; // W columns a thread
	static constexpr int QS = D + 4, PS = KEYS + 4, CS = C + 4;                        // strides in shared memory

	float score[R][4], out[SLICES][R][W], m[R], l[R];

	// scores adds the products of a slice of the queries and keys.
	__device__ __forceinline__ void scores(const float *q, const float *panel, int c0) {
		int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
#pragma unroll 4
		for (int c = 0; c < C; c += 4) {
			float4 k[4];
#pragma unroll
			for (int j = 0; j < 4; j++) k[j] = *(const float4 *)(panel + (tx + 16 * j) * CS + c);
#pragma unroll
			for (int r = 0; r < R; r++) {
				float4 x = *(const float4 *)(q + (ty * R + r) * QS + c0 + c);
#pragma unroll
				for (int j = 0; j < 4; j++) {
					score[r][j] += x.x * k[j].x;
					score[r][j] += x.y * k[j].y;
					score[r][j] += x.z * k[j].z;
					score[r][j] += x.w * k[j].w;
				}
			}
		}
	}

	// weigh turns the scores of a tile into weights exp(s - m), stores them, and moves m and l on. keep[r] is what the
	// sums so far must be multiplied by.
	__device__ __forceinline__ void weigh(const Prefill &p, float *weights, unsigned row0, unsigned key0, float keep[R]) {
		int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
#pragma unroll
		for (int r = 0; r < R; r++) {
			i64 seen = visible(row0 + ty * R + r, p.t, p.causal, p.diagonal) - key0;
			float max = m[r];
#pragma unroll
			for (int j = 0; j < 4; j++) {
				score[r][j] = tx + 16 * j < seen ? score[r][j] * p.scale : NEG_INF;
				max = fmaxf(max, score[r][j]);
			}
			max = Warp<16>::max(max);
			float from = base(max), sum = 0;
#pragma unroll
			for (int j = 0; j < 4; j++) {
				float w = expf(score[r][j] - from);
				weights[(ty * R + r) * PS + tx + 16 * j] = w;
				sum += w;
			}
			keep[r] = expf(m[r] - from);
			l[r] = l[r] * keep[r] + Warp<16>::sum(sum);
			m[r] = max;
		}
	}

	// values adds a slice of the weighted values. Where PARTIAL, some row does not see some key of the tile.
	template <bool PARTIAL>
	__device__ __forceinline__ void values(const Prefill &p, const float *weights, const float *panel, int slice,
	                                       unsigned row0, unsigned key0, const float keep[R]) {
		int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
		float sum[R][W] = {};
		int seen[R];
#pragma unroll
		for (int r = 0; r < R; r++) {
			i64 n = visible(row0 + ty * R + r, p.t, p.causal, p.diagonal) - key0;
			seen[r] = n < 0 ? 0 : n > KEYS ? KEYS : (int)n;
		}
#pragma unroll 2
		for (int key = 0; key < KEYS; key += 4) {
			float v[4][W];
#pragma unroll
			for (int j = 0; j < 4; j++)
#pragma unroll
				for (int w = 0; w < W; w++) v[j][w] = panel[(key + j) * CS + tx * W + w];
#pragma unroll
			for (int r = 0; r < R; r++) {
				float4 x4 = *(const float4 *)(weights + (ty * R + r) * PS + key);
				float x[4] = {x4.x, x4.y, x4.z, x4.w};
#pragma unroll
				for (int j = 0; j < 4; j++)
#pragma unroll
					for (int w = 0; w < W; w++)
						if (!PARTIAL || key + j < seen[r]) sum[r][w] += x[j] * v[j][w];
			}
		}
#pragma unroll
		for (int r = 0; r < R; r++)
#pragma unroll
			for (int w = 0; w < W; w++)
#pragma unroll
				for (int i = 0; i < SLICES; i++) // the index of a register array must be known to the compiler
					if (i == slice) out[i][r][w] = out[i][r][w] * keep[r] + sum[r][w];
	}
};

// prefill makes the rows from row0 of head h.
template <int D, int R> __device__ __forceinline__ void prefill(const Prefill &p, unsigned h, unsigned row0) {
	using Tile = PrefillTile<D, R>;
	constexpr int C = Tile::C, SLICES = Tile::SLICES;
	extern __shared__ __align__(16) float shared[];
	float *q = shared, *weights = q + Tile::ROWS * Tile::QS, *panel = weights + Tile::ROWS * Tile::PS;

	unsigned kv = h / p.group;
	int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
	for (int i = threadIdx.x; i < Tile::ROWS * D / 4; i += BLOCK) {
		int r = i / (D / 4), c = i % (D / 4) * 4;
		float4 x = make_float4(0, 0, 0, 0);
		if (row0 + r < p.s) x = load4(at(p.q, h, row0 + r), c, p.d, p.vec);
		*(float4 *)(q + r * Tile::QS + c) = x;
	}

	unsigned last = min(row0 + Tile::ROWS, p.s) - 1;
	unsigned keys = (unsigned)visible(last, p.t, p.causal, p.diagonal);  // that any row of the block sees
	unsigned full = (unsigned)visible(row0, p.t, p.causal, p.diagonal); // that every row sees
	Tile tile;
#pragma unroll
	for (int r = 0; r < R; r++) {
		tile.m[r] = NEG_INF;
		tile.l[r] = 0;
#pragma unroll
		for (int i = 0; i < SLICES; i++)
#pragma unroll
			for (int w = 0; w < Tile::W; w++) tile.out[i][r][w] = 0;
	}

	Panel<C> next;
	if (keys > 0) next.load(p.k, kv, 0, keys, 0, p.d, p.vec);
	for (unsigned key0 = 0; key0 < keys; key0 += KEYS) {
#pragma unroll
		for (int r = 0; r < R; r++)
#pragma unroll
			for (int j = 0; j < 4; j++) tile.score[r][j] = 0;
#pragma unroll
		for (int i = 0; i < SLICES; i++) {
			__syncthreads();
			next.store(panel);
			__syncthreads();
			if (i + 1 < SLICES)
				next.load(p.k, kv, key0, keys, (i + 1) * C, p.d, p.vec);
			else
				next.load(p.v, kv, key0, keys, 0, p.d, p.vec);
			tile.scores(q, panel, i * C);
		}
		float keep[R];
		tile.weigh(p, weights, row0, key0, keep); // read back after the barrier of the first slice of values
#pragma unroll
		for (int i = 0; i < SLICES; i++) {
			__syncthreads();
			next.store(panel);
			__syncthreads();
			if (i + 1 < SLICES)
				next.load(p.v, kv, key0, keys, (i + 1) * C, p.d, p.vec);
			else if (key0 + KEYS < keys)
				next.load(p.k, kv, key0 + KEYS, keys, 0, p.d, p.vec);
			if (key0 + KEYS <= full)
				tile.template values<false>(p, weights, panel, i, row0, key0, keep);
			else
				tile.template values<true>(p, weights, panel, i, row0, key0, keep);
		}
	}

#pragma unroll
	for (int r = 0; r < R; r++) {
		unsigned row = row0 + ty * R + r;
		if (row >= p.s) continue;
		bool sees = visible(row, p.t, p.causal, p.diagonal) > 0;
		float *to = at(p.out, h, row);
#pragma unroll
		for (int i = 0; i < SLICES; i++)
#pragma unroll
			for (int w = 0; w < Tile::W; w++) {
				int c = i * C + tx * Tile::W + w;
				if (c < p.d) to[c] = sees ? tile.out[i][r][w] / tile.l[r] : 0;
			}
		if (p.lse && tx == 0) p.lse[h * p.lseStride + row] = isinf(tile.m[r]) ? tile.m[r] : tile.m[r] + logf(tile.l[r]);
	}
}

#define PREFILL(D, R)                                                                                                  \
	extern "C" __global__ void __launch_bounds__(BLOCK) prefill_##D##_##R(const __grid_constant__ Prefill p) {          \
		begin(p.progress);                                                                                             \
		/* Heads run fastest and late rows, which see most, come first. */                                             \
		prefill<D, R>(p, blockIdx.x, (gridDim.y - 1 - blockIdx.y) * 16 * R);                                           \
	}
PREFILL(16, 4)
PREFILL(32, 4)
PREFILL(64, 4)
PREFILL(64, 8)
PREFILL(96, 4)
PREFILL(128, 2)
PREFILL(128, 4)
PREFILL(128, 8)
PREFILL(192, 2)
PREFILL(192, 4)
PREFILL(256, 2)
PREFILL(256, 4)
