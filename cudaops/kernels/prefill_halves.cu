// prefill_halves is prefill (prefill.cu) on tensor cores, to f32 accuracy: fp16x3 (tensor.cuh), over the tiles that halves makes.
//
// A block of 8 warps makes 16*M*G rows: G groups of rows, 16*M each, and for each of them 8/G warps, which share out the keys: 32
// of every 32*8/G. A warp keeps maximum, sum and weighted values of its own keys; at the end they are joined. Weights are relative to
// the row's maximum over those 32 keys, times 2^14, so that their pairs hold those down to 2^-29 of it. Smaller ones can count
// only where the values of heavier keys are as good as 0: in tiles that are sparse these are taken in by themselves, raised. The weighted
// values of 32 keys are made by themselves, cross terms apart, and then added, which is the remedy for accumulators that truncate.
// Queries become pairs in the block itself. Tiles come by asynchronous copies, one or two at a time.
//
// Where pairs do not do (reach, in halves.cu, or queries and keys so large that the error of a score, 2^-50 |q| |k| d scale, would show), the
// block runs prefill's own code instead: in FFMA, where nothing hidden gets into a sum.
//
// Bound by the latency of dependent instructions: two warps a scheduler (registers), of which ncu finds the tensor cores 39% busy on an H200. At few
// rows, by the code itself, which is fetched to run once.
//
// Versions: 1. this: 24.0 ms for H 32, d 128, S 16384 on an H200, where prefill.cu takes 66.

#pragma once

#include "async.cuh"
#include "prefill.cu"
#include "tensor.cuh"

struct PrefillHalves {
	Prefill prefill;
	half16 *tiles;         // of halves
	float *factors, *reach;
	unsigned count, stages; // tiles a key head; how many steps of keys shared memory holds
};

#ifdef TENSOR

#define LOG2E 1.44269504088896341f
#define LN2 0.693147180559945309f
#define LOWEST (-15.f) // log2 of the smallest weight that pairs hold, where the largest is 2^14
#define LEVEL 28.f     // and by how much the next level's are raised

// A warp's rows: M times 16. A thread has rows l/4 and l/4+8 of each 16, and columns 2(l%4) and the next of each 8.
template <int D, int M> struct HalvesWarp {
	static constexpr int N = D / 8;
	float out[M][N][4], m[M][2], l[M][2];

	__device__ __forceinline__ void clear() {
#pragma unroll
		for (int i = 0; i < M; i++) {
#pragma unroll
			for (int n = 0; n < N; n++)
#pragma unroll
				for (int j = 0; j < 4; j++) out[i][n][j] = 0;
			m[i][0] = m[i][1] = NEG_INF;
			l[i][0] = l[i][1] = 0;
		}
	}

	// keys takes 32 keys in. q: the block's queries (hi, then lo, of rows rows each), row0 of which is this warp's first; tile: key0 of its
	// keys is the first of the 32. down: factors of the queries, with the scale.
	//
	// With CARE, seen is how many of the 32 keys each row sees; and where the tile is sparse, weights below 2^-29 of the largest, which
	// pairs do not hold, are left for a call at the next level. keys says whether there are such.
	template <int ROWS, bool CARE>
	__device__ __forceinline__ bool keys(const half16 *q, int row0, const half16 *tile, int key0, const float *factors,
	                                     const float *down, const int *seen, int level) {
		int lane = threadIdx.x % 32;
		bool more = false, sparse = CARE && factors[TILE_KEYS + D] != 0;
		const float raised = LEVEL * level;
		float s[M][4][4] = {}, x[M][4][4] = {};
#pragma unroll
		for (int k = 0; k < D / 16; k++) {
			unsigned a[M][4], b[2][4], hi[2][4];
			const half16 *left = q + place(row0 + lane % 16, k * 2 + lane / 16, ROWS);
			const half16 *right = tile + place(key0 + lane % 8 + lane / 16 * 8, k * 2 + lane / 8 % 2, 2 * TILE_KEYS);
#pragma unroll
			for (int i = 0; i < M; i++) loadFragments(a[i], left + i * 16 * 64);
#pragma unroll
			for (int n = 0; n < 2; n++) loadFragments(b[n], right + TILE_LO + n * 16 * 64);
#pragma unroll
			for (int i = 0; i < M; i++)
#pragma unroll
				for (int n = 0; n < 4; n++) multiply(x[i][n], a[i], b[n / 2][n % 2 * 2], b[n / 2][n % 2 * 2 + 1]);
#pragma unroll
			for (int n = 0; n < 2; n++) loadFragments(hi[n], right + n * 16 * 64);
#pragma unroll
			for (int i = 0; i < M; i++)
#pragma unroll
				for (int n = 0; n < 4; n++) multiply(s[i][n], a[i], hi[n / 2][n % 2 * 2], hi[n / 2][n % 2 * 2 + 1]);
#pragma unroll
			for (int i = 0; i < M; i++) loadFragments(a[i], left + ROWS * D + i * 16 * 64);
#pragma unroll
			for (int i = 0; i < M; i++)
#pragma unroll
				for (int n = 0; n < 4; n++) multiply(x[i][n], a[i], hi[n / 2][n % 2 * 2], hi[n / 2][n % 2 * 2 + 1]);
		}

		float keep[M][2], take[M][2];
		unsigned wh[M][2][4], wl[M][2][4]; // the weights, as the first factor of the products that follow
#pragma unroll
		for (int i = 0; i < M; i++) {
			float max[2] = {NEG_INF, NEG_INF};
#pragma unroll
			for (int n = 0; n < 4; n++) {
				int c = n * 8 + lane % 4 * 2;
				float2 f = *(const float2 *)(factors + key0 + c);
#pragma unroll
				for (int j = 0; j < 4; j++) {
					float y = (s[i][n][j] + x[i][n][j] * SMALL) * (j & 1 ? f.y : f.x) * down[row0 + i * 16 + j / 2 * 8 + lane / 4];
					if (CARE && c + (j & 1) >= seen[2 * i + j / 2]) y = NEG_INF;
					s[i][n][j] = y;
					max[j / 2] = fmaxf(max[j / 2], y);
				}
			}
			float from[2];
#pragma unroll
			for (int r = 0; r < 2; r++) {
				max[r] = Warp<4>::max(max[r]) - 14; // so that weights are up to 2^14
				from[r] = base(max[r]);
				float now = fmaxf(m[i][r], max[r]);
				keep[i][r] = power2(m[i][r] - base(now));
				take[i][r] = power2(max[r] - base(now) - raised);
				m[i][r] = now;
				l[i][r] *= keep[i][r];
			}
			float sum[2] = {};
#pragma unroll
			for (int n = 0; n < 4; n++) {
#pragma unroll
				for (int j = 0; j < 4; j++) {
					float y = s[i][n][j] - from[j / 2];
					if (CARE && sparse) {
						y += raised;
						more |= y < LOWEST && y > LOWEST - 126;
						if (y < LOWEST || level > 0 && y >= LOWEST + LEVEL) y = NEG_INF;
					}
					s[i][n][j] = power2(y);
					sum[j / 2] += s[i][n][j];
				}
#pragma unroll
				for (int r = 0; r < 2; r++) halve(s[i][n][2 * r], s[i][n][2 * r + 1], wh[i][n / 2][n % 2 * 2 + r], wl[i][n / 2][n % 2 * 2 + r]);
			}
#pragma unroll
			for (int r = 0; r < 2; r++) l[i][r] += sum[r] * take[i][r];
		}

		const half16 *values = tile + 2 * TILE_KEYS * D;
#pragma unroll
		for (int n2 = 0; n2 < D / 16; n2++) {
			float y[M][2][4] = {}, z[M][2][4] = {};
#pragma unroll
			for (int k = 0; k < 2; k++) {
				unsigned vh[4], vl[4];
				const half16 *from = values + place(key0 + k * 16 + lane % 16, n2 * 2 + lane / 16, 2 * TILE_KEYS);
				loadTransposed(vh, from);
				loadTransposed(vl, from + TILE_LO);
#pragma unroll
				for (int i = 0; i < M; i++)
#pragma unroll
					for (int n = 0; n < 2; n++) multiply(z[i][n], wh[i][k], vl[2 * n], vl[2 * n + 1]);
#pragma unroll
				for (int i = 0; i < M; i++)
#pragma unroll
					for (int n = 0; n < 2; n++) multiply(y[i][n], wh[i][k], vh[2 * n], vh[2 * n + 1]);
#pragma unroll
				for (int i = 0; i < M; i++)
#pragma unroll
					for (int n = 0; n < 2; n++) multiply(z[i][n], wl[i][k], vh[2 * n], vh[2 * n + 1]);
			}
#pragma unroll
			for (int n = 0; n < 2; n++) {
				float2 f = *(const float2 *)(factors + TILE_KEYS + n2 * 16 + n * 8 + lane % 4 * 2);
#pragma unroll
				for (int i = 0; i < M; i++)
#pragma unroll
					for (int j = 0; j < 4; j++) {
						float &o = out[i][n2 * 2 + n][j];
						o = o * keep[i][j / 2] + (y[i][n][j] + z[i][n][j] * SMALL) * (j & 1 ? f.y : f.x) * take[i][j / 2];
					}
			}
		}
		return CARE && __any_sync(~0u, more);
	}

	// own takes in those of the 32 keys from key0 that this warp's rows see, the first of which is row0 + own.
	template <int ROWS>
	__device__ __forceinline__ void own(const Prefill &p, unsigned row0, int own, unsigned key0, unsigned keys, const half16 *q,
	                                    const float *down, const half16 *tile, const float *factors) {
		unsigned fewest = (unsigned)visible(row0 + own, p.t, p.causal, p.diagonal);
		unsigned farthest = (unsigned)visible(row0 + own + 16 * M - 1, p.t, p.causal, p.diagonal);
		if (key0 >= farthest || key0 >= keys) return;
		if (key0 + 32 <= fewest && factors[TILE_KEYS + D] == 0) {
			this->template keys<ROWS, false>(q, own, tile, key0 % TILE_KEYS, factors, down, nullptr, 0);
			return;
		}
		int seen[2 * M], level = 0;
#pragma unroll
		for (int i = 0; i < 2 * M; i++)
			seen[i] = (int)min(visible(row0 + own + i * 8 + threadIdx.x % 32 / 4, p.t, p.causal, p.diagonal) - key0, (i64)32);
		while (this->template keys<ROWS, true>(q, own, tile, key0 % TILE_KEYS, factors, down, seen, level)) level++;
	}

	// save passes what a warp has made to others of the same rows, joined takes of PARTS such the COUNT pieces of 8 columns from n0 on.
	static constexpr int FLOATS = (M * N * 4 + 4 * M) * 32;
	__device__ __forceinline__ void save(float *to) const {
		to += threadIdx.x % 32;
#pragma unroll
		for (int i = 0; i < M; i++) {
#pragma unroll
			for (int r = 0; r < 2; r++, to += 64) to[0] = m[i][r], to[32] = l[i][r];
#pragma unroll
			for (int n = 0; n < N; n++)
#pragma unroll
				for (int j = 0; j < 4; j++, to += 32) *to = out[i][n][j];
		}
	}
	template <int PARTS, int COUNT>
	static __device__ __forceinline__ void joined(const float *from, int stride, int n0, float out[M][COUNT][4], float m[M][2], float l[M][2]) {
#pragma unroll
		for (int i = 0; i < M; i++) {
			const float *each = from + i * (128 + N * 128) + threadIdx.x % 32;
			float f[PARTS][2];
#pragma unroll
			for (int r = 0; r < 2; r++) {
				m[i][r] = NEG_INF, l[i][r] = 0;
#pragma unroll
				for (int k = 0; k < PARTS; k++) m[i][r] = fmaxf(m[i][r], each[k * stride + r * 64]);
#pragma unroll
				for (int k = 0; k < PARTS; k++) {
					f[k][r] = power2(each[k * stride + r * 64] - base(m[i][r]));
					l[i][r] += each[k * stride + r * 64 + 32] * f[k][r];
				}
			}
#pragma unroll
			for (int n = 0; n < COUNT; n++)
#pragma unroll
				for (int j = 0; j < 4; j++) {
					out[i][n][j] = 0;
#pragma unroll
					for (int k = 0; k < PARTS; k++) out[i][n][j] += each[k * stride + 128 + ((n0 + n) * 4 + j) * 32] * f[k][j / 2];
				}
		}
	}

	// store writes COUNT pieces of 8 columns, from n0 on.
	template <int COUNT>
	static __device__ __forceinline__ void store(const Prefill &p, unsigned h, unsigned row0, int n0, const float out[M][COUNT][4],
	                                             const float m[M][2], const float l[M][2]) {
		int lane = threadIdx.x % 32;
#pragma unroll
		for (int i = 0; i < M; i++)
#pragma unroll
			for (int r = 0; r < 2; r++) {
				float sum = Warp<4>::sum(l[i][r]), by = sum > 0 ? 1 / sum : 0;
				unsigned row = row0 + i * 16 + r * 8 + lane / 4;
				if (row >= p.s) continue;
				float *to = at(p.out, h, row);
				bool pairs = (p.d & 1) == 0 && ((unsigned long long)to & 7) == 0;
#pragma unroll
				for (int n = 0; n < COUNT; n++) {
					unsigned c = (n0 + n) * 8 + lane % 4 * 2;
					float a = out[i][n][2 * r] * by, b = out[i][n][2 * r + 1] * by;
					if (pairs && c < p.d) *(float2 *)(to + c) = make_float2(a, b);
					if (!pairs && c < p.d) to[c] = a;
					if (!pairs && c + 1 < p.d) to[c + 1] = b;
				}
				if (p.lse && n0 == 0 && lane % 4 == 0) p.lse[h * p.lseStride + row] = sum > 0 ? (m[i][r] + log2f(sum)) * LN2 : NEG_INF;
			}
	}
};

// inFull is prefill as a function by itself, whose registers do not add to those of what calls it.
template <int D, int R> __device__ __noinline__ void inFull(const Prefill &p, unsigned h, unsigned row0) { prefill<D, R>(p, h, row0); }

// reached is the reach of the first count tiles: of those that this thread looks at.
__device__ __forceinline__ float reached(const PrefillHalves &all, unsigned kv, unsigned count) {
	float reach = 0;
	for (unsigned i = threadIdx.x; i < count; i += BLOCK) reach = fmaxf(reach, all.reach[(i64)kv * all.count + i]);
	return reach;
}

// queries writes the rows from row0 of the queries as pairs: hi, then lo, [ROWS, D] by place each, and their factors, with the scale. It
// returns the largest magnitude that this thread has met.
template <int D, int ROWS>
__device__ __forceinline__ float queries(const Prefill &p, unsigned h, unsigned row0, half16 *q, float *down) {
	float most = 0;
#pragma unroll
	for (int i = 0; i < ROWS * D / 4 / BLOCK; i++) {
		int t = i * BLOCK + threadIdx.x, row = t / (D / 4), c = t % (D / 4) * 4;
		float4 x = make_float4(0, 0, 0, 0);
		if (row0 + row < p.s) x = load4(at(p.q, h, row0 + row), c, p.d, p.vec);
		float high = Warp<D / 4>::max(fmaxf(fmaxf(magnitude(x.x), magnitude(x.y)), fmaxf(magnitude(x.z), magnitude(x.w))));
		most = fmaxf(most, high);
		Scaling s(high);
		uint2 hi, lo;
		halve(x.x * s.up, x.y * s.up, hi.x, lo.x);
		halve(x.z * s.up, x.w * s.up, hi.y, lo.y);
		half16 *to = q + place(row, c / 8, ROWS) + c % 8;
		*(uint2 *)to = hi;
		*(uint2 *)(to + ROWS * D) = lo;
		if (c == 0) down[row] = s.down * (p.scale * LOG2E);
	}
	return most;
}

// pairsDo says whether pairs do for queries up to most and tiles of that reach, the largest of any thread's; every thread has then passed a
// barrier.
template <int D> __device__ __forceinline__ bool pairsDo(float reach, float most, float scale) {
	__shared__ float largest[2][BLOCK / 32];
	reach = Warp<32>::max(reach);
	most = Warp<32>::max(most);
	if (threadIdx.x % 32 == 0) largest[0][threadIdx.x / 32] = reach, largest[1][threadIdx.x / 32] = most;
	__syncthreads();
#pragma unroll
	for (int i = 0; i < BLOCK / 32; i++) {
		reach = fmaxf(reach, largest[0][i]);
		most = fmaxf(most, largest[1][i]);
	}
	return reach * most * fabsf(scale) * D <= 16777216.f; // 2^24; NaN, no, where one is +Inf, the other 0
}

// finish joins what the warps of a group of rows have made, and writes the rows: a warp a share of the columns.
template <int D, int M, int G>
__device__ __forceinline__ void finish(const HalvesWarp<D, M> &w, const Prefill &p, unsigned h, unsigned row0, float *shared) {
	using Rows = HalvesWarp<D, M>;
	constexpr int PARTS = 8 / G, COUNT = Rows::N / PARTS;
	int warp = threadIdx.x / 32, group = warp % G, n0 = warp / G * COUNT;
	w.save(shared + warp * Rows::FLOATS);
	__syncthreads();
	float out[M][COUNT][4], m[M][2], l[M][2];
	Rows::template joined<PARTS, COUNT>(shared + group * Rows::FLOATS, G * Rows::FLOATS, n0, out, m, l);
	Rows::template store<COUNT>(p, h, row0 + group * 16 * M, n0, out, m, l);
}

template <int D, int M, int G> __device__ __forceinline__ void prefillHalves(const PrefillHalves &all) {
	const Prefill &p = all.prefill;
	constexpr int ROWS = 16 * M * G, K = 8 / G, STEP = 32 * K; // K warps share the keys; keys a step
	constexpr int TILE = 4 * TILE_KEYS * D, FACTORS = TILE_KEYS + D + 4;
	constexpr int STAGE = STEP / TILE_KEYS * (TILE / 2 + FACTORS); // floats
	extern __shared__ __align__(16) float shared[];
	half16 *q = (half16 *)shared; // [2][ROWS, D] by place
	float *down = shared + ROWS * D, *stage = down + ROWS;
	int warp = threadIdx.x / 32;
	unsigned h = blockIdx.x, kv = h / p.group, row0 = (gridDim.y - 1 - blockIdx.y) * ROWS;
	unsigned keys = (unsigned)visible(min(row0 + ROWS, p.s) - 1, p.t, p.causal, p.diagonal); // that any row of the block sees
	unsigned count = (keys + TILE_KEYS - 1) / TILE_KEYS;

	float most = queries<D, ROWS>(p, h, row0, q, down);
	if (!pairsDo<D>(reached(all, kv, count), most, p.scale)) {
		inFull<D, ROWS / 16>(p, h, row0);
		return;
	}

	auto load = [&](unsigned step, float *to) {
#pragma unroll
		for (int t = 0; t < STEP / TILE_KEYS; t++) {
			unsigned tile = step * (STEP / TILE_KEYS) + t;
			if (tile >= count) break;
			i64 at = (i64)kv * all.count + tile;
			const float *from = (const float *)(all.tiles + at * TILE);
#pragma unroll
			for (int i = 0; i < TILE / 8 / BLOCK; i++) {
				int c = (i * BLOCK + threadIdx.x) * 4;
				copyAsync<16>(to + t * TILE / 2 + c, from + c, true);
			}
			int c = threadIdx.x * 4;
			if (c < FACTORS) copyAsync<16>(to + STEP / TILE_KEYS * (TILE / 2) + t * FACTORS + c, all.factors + at * FACTORS + c, true);
		}
	};

	HalvesWarp<D, M> w;
	w.clear();
	int own = warp % G * 16 * M, part = warp / G; // this warp's first row in the block, and which of the keys it takes
	unsigned steps = (keys + STEP - 1) / STEP;
	if (steps > 0) load(0, stage);
	commitAsync();
	for (unsigned step = 0; step < steps; step++) {
		float *now = stage;
		if (all.stages > 1) {
			now += step % 2 * STAGE;
			if (step + 1 < steps) load(step + 1, stage + (step + 1) % 2 * STAGE);
			commitAsync();
			waitAsync(1);
		} else
			waitAsync(0);
		__syncthreads();
		const float *tile = now + part / 2 * (TILE / 2), *factors = now + STEP / TILE_KEYS * (TILE / 2) + part / 2 * FACTORS;
		w.template own<ROWS>(p, row0, own, step * STEP + part * 32, keys, q, down, (const half16 *)tile, factors);
		__syncthreads();
		if (all.stages == 1 && step + 1 < steps) {
			load(step + 1, stage);
			commitAsync();
		}
	}

	finish<D, M, G>(w, p, h, row0, shared);
}

#define PREFILL_HALVES(D, M, G)                                                                                            \
	extern "C" __global__ void __launch_bounds__(BLOCK, 1)                                                                 \
	    prefill_halves_##D##_##M##_##G(const __grid_constant__ PrefillHalves p) {                                          \
		begin(p.prefill.progress);                                                                                         \
		prefillHalves<D, M, G>(p);                                                                                         \
	}
PREFILL_HALVES(64, 1, 2)
PREFILL_HALVES(64, 1, 4)
PREFILL_HALVES(64, 2, 4)
PREFILL_HALVES(128, 1, 2)
PREFILL_HALVES(128, 1, 4)
PREFILL_HALVES(128, 2, 4)
#endif
