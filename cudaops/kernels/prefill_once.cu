// prefill_once is prefill (prefill.cu) for up to 128 keys on tensor cores, to f32 accuracy, in one launch and without tiles: numbers go from
// memory to registers, where each becomes two of TF32 (split, tensor.cuh), which need no scales. A tf32x3 product leaves out as little as fp16x3.
//
// A prefill so short does not fill the GPU; what counts is how long one block takes. A block of 8 warps makes two groups of 16 rows, early ones
// and late ones, so that under a causal mask all blocks have as much to do. Every load is asked for at the beginning. A warp makes the scores of 16
// rows and 16 keys at a time, threads eighth by eighth of a row the weights, and then each warp the 16 (8 for head dims to 64) columns of the
// result that its values are of, over all keys. No accumulator takes more than 32 products, since tensor cores truncate.
//
// Weights are relative to the row's maximum, times 2^40: so the second half of one is there down to 2^-154 of the largest. Where an element is
// not finite or above 2^56, or a value, not 0, below 2^-100, whose second half would be lost, the block runs prefill's own code.
//
// Versions, for H 32, d 128, S 128 on an H200: 1. blocks of 32 rows, each of which makes fp16x3 tiles of all keys and values (halves.cu): 21 us, 15.5
// with all warps joining: 6 us of it pairs. 2. this.

#pragma once

#include "prefill_halves.cu"

#ifdef TENSOR

#define GROUP 16          // rows of a group, and keys that a warp scores at a time
#define ONCE_STRIDE 136   // floats between rows of weights: 128 and what keeps their rows on banks of their own
#define LIFT 1099511627776.f // 2^40, the largest weight

template <int D> struct Once {
	static constexpr int PANELS = D / 16, COLS = D / 8, TILES = COLS / 8, STEPS = 128 / 8; // COLS columns of the result a warp
	float4 k[2][PANELS];         // of 16 keys: key l/4 and the 8th from it, columns 4(l%4) ... of each 16
	float v[STEPS][2][TILES];    // keys 2(l%4) and the next of each 8, columns TILES*(l/4) ... of the warp's

	static constexpr float MOST = 72057594037927936.f; // 2^56

	// place is where piece c (4 columns) of a query lies: odd rows have the halves of 128 bytes swapped, so that 8 threads' pieces of 2 rows lie
	// on all banks.
	static __device__ __forceinline__ int place(int row, int c) { return row * D + (c ^ (row & 1) << 2) * 4; }

	__device__ __forceinline__ void loadKeys(const Prefill &p, unsigned kv, unsigned key0, unsigned keys) {
		int lane = threadIdx.x % 32;
#pragma unroll
		for (int n = 0; n < 2; n++) {
			unsigned key = key0 + n * 8 + lane / 4;
			const float *row = at(p.k, kv, key);
#pragma unroll
			for (int i = 0; i < PANELS; i++) k[n][i] = load4(row, i * 16 + lane % 4 * 4, key < keys ? p.d : 0, p.vec);
		}
	}
	// keySizes is the sum of magnitudes: NaN or too large where an element is.
	__device__ __forceinline__ float keySizes() const {
		float sum[2] = {};
#pragma unroll
		for (int n = 0; n < 2; n++)
#pragma unroll
			for (int i = 0; i < PANELS; i++) sum[n] += fabsf(k[n][i].x), sum[n] += fabsf(k[n][i].y), sum[n] += fabsf(k[n][i].z), sum[n] += fabsf(k[n][i].w);
		return sum[0] + sum[1];
	}

	__device__ __forceinline__ void loadValues(const Prefill &p, unsigned kv, unsigned keys) {
		int lane = threadIdx.x % 32, c = threadIdx.x / 32 * COLS + lane / 4 * TILES;
#pragma unroll
		for (int s = 0; s < STEPS; s++)
#pragma unroll
			for (int e = 0; e < 2; e++) {
				unsigned key = s * 8 + lane % 4 * 2 + e;
				const float *row = at(p.v, kv, key);
				int cols = key < keys ? p.d : 0;
				if (TILES == 2 && p.vec) {
					float2 x = c < cols ? *(const float2 *)(row + c) : make_float2(0, 0);
					v[s][e][0] = x.x, v[s][e][TILES - 1] = x.y;
					continue;
				}
#pragma unroll
				for (int j = 0; j < TILES; j++) v[s][e][j] = c + j < cols ? row[c + j] : 0;
			}
	}
	// valuesDo says whether the warp's values may be split.
	__device__ __forceinline__ bool valuesDo() const {
		float sum[2] = {};
		unsigned least = ~0u; // twice the bits of a magnitude, less 1: what is 0 is the largest
#pragma unroll
		for (int s = 0; s < STEPS; s++)
#pragma unroll
			for (int e = 0; e < 2; e++)
#pragma unroll
				for (int j = 0; j < TILES; j++) {
					sum[e] += fabsf(v[s][e][j]);
					least = min(least, (unsigned)__float_as_int(v[s][e][j]) * 2 - 1);
				}
		return sum[0] + sum[1] <= MOST && least >= (27u << 24) - 1; // 2^-100
	}

	// scores writes those of 16 rows of q and the 16 keys to a [16, ONCE_STRIDE] part of s.
	__device__ __forceinline__ void scores(const float *q, float *s) const {
		int lane = threadIdx.x % 32;
		float sum[2][4] = {}, y[2][4] = {}, x[2][4] = {};
#pragma unroll
		for (int i = 0; i < PANELS; i++) {
			float4 a = *(const float4 *)(q + place(lane / 4, i * 4 + lane % 4)), b = *(const float4 *)(q + place(lane / 4 + 8, i * 4 + lane % 4));
			unsigned ah[2][4], al[2][4];
			split(a.x, ah[0][0], al[0][0]), split(b.x, ah[0][1], al[0][1]), split(a.y, ah[0][2], al[0][2]), split(b.y, ah[0][3], al[0][3]);
			split(a.z, ah[1][0], al[1][0]), split(b.z, ah[1][1], al[1][1]), split(a.w, ah[1][2], al[1][2]), split(b.w, ah[1][3], al[1][3]);
#pragma unroll
			for (int n = 0; n < 2; n++) {
				unsigned bh[4], bl[4];
				split(k[n][i].x, bh[0], bl[0]), split(k[n][i].y, bh[1], bl[1]), split(k[n][i].z, bh[2], bl[2]), split(k[n][i].w, bh[3], bl[3]);
#pragma unroll
				for (int j = 0; j < 2; j++) {
					multiply32(x[n], ah[j], bl[2 * j], bl[2 * j + 1]);
					multiply32(y[n], ah[j], bh[2 * j], bh[2 * j + 1]);
					multiply32(x[n], al[j], bh[2 * j], bh[2 * j + 1]);
				}
				if (i % 2 == 0) continue;
#pragma unroll
				for (int j = 0; j < 4; j++) sum[n][j] += y[n][j] + x[n][j], y[n][j] = x[n][j] = 0;
			}
		}
#pragma unroll
		for (int n = 0; n < 2; n++)
#pragma unroll
			for (int r = 0; r < 2; r++) *(float2 *)(s + (lane / 4 + r * 8) * ONCE_STRIDE + n * 8 + lane % 4 * 2) = make_float2(sum[n][2 * r], sum[n][2 * r + 1]);
	}
};

template <int D> __device__ __forceinline__ void prefillOnce(const Prefill &p) {
	using Own = Once<D>;
	constexpr int TILES = Own::TILES;
	__shared__ bool fails[BLOCK / 32];
	__shared__ float inverse[2 * GROUP];
	extern __shared__ __align__(16) float shared[];
	float *q = shared, *weights = q + 2 * GROUP * D;
	int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
	unsigned h = blockIdx.x, kv = h / p.group;
	unsigned early = blockIdx.y, late = (p.s + GROUP - 1) / GROUP - 1 - early, first[2] = {late * GROUP, early * GROUP}; // rows
	unsigned keys[2]; // that any row of a group sees
	keys[0] = (unsigned)visible(min(first[0] + GROUP, p.s) - 1, p.t, p.causal, p.diagonal);
	keys[1] = early == late ? 0 : (unsigned)visible(min(first[1] + GROUP, p.s) - 1, p.t, p.causal, p.diagonal);
	unsigned parts[2] = {(keys[0] + GROUP - 1) / GROUP, (keys[1] + GROUP - 1) / GROUP};

	constexpr int EACH = 2 * GROUP * D / 4 / BLOCK;
	float4 x[EACH];
#pragma unroll
	for (int i = 0; i < EACH; i++) {
		int t = i * BLOCK + threadIdx.x, row = t / (D / 4);
		unsigned from = row < GROUP ? first[0] + row : first[1] + row - GROUP;
		x[i] = load4(at(p.q, h, from), t % (D / 4) * 4, from < p.s ? p.d : 0, p.vec);
	}
	Own own;
	unsigned task = warp; // a part of the keys for the late rows, or, behind these, for the early ones
	if (task < parts[0] + parts[1]) own.loadKeys(p, kv, (task < parts[0] ? task : task - parts[0]) * GROUP, keys[0]);
	own.loadValues(p, kv, keys[0]);
	float sizes = 0;
#pragma unroll
	for (int i = 0; i < EACH; i++) {
		int t = i * BLOCK + threadIdx.x;
		*(float4 *)(q + Own::place(t / (D / 4), t % (D / 4))) = x[i];
		sizes += fabsf(x[i].x) + fabsf(x[i].y) + (fabsf(x[i].z) + fabsf(x[i].w));
	}
	__syncthreads();
	while (task < parts[0] + parts[1]) {
		bool of = task >= parts[0];
		sizes += own.keySizes();
		own.scores(q + of * GROUP * D, weights + of * GROUP * ONCE_STRIDE + (task - of * parts[0]) * GROUP);
		task += BLOCK / 32;
		if (task < parts[0] + parts[1]) own.loadKeys(p, kv, (task < parts[0] ? task : task - parts[0]) * GROUP, keys[0]);
	}
	bool bad = __any_sync(~0u, !(sizes * fmaxf(1, fabsf(p.scale)) <= Own::MOST && own.valuesDo()));
	if (lane == 0) fails[warp] = bad;
	__syncthreads();
	bool failed = false;
#pragma unroll
	for (int i = 0; i < BLOCK / 32; i++) failed |= fails[i];
	if (failed) {
		inFull<D, 1>(p, h, first[0]);
		__syncthreads();
		if (early != late) inFull<D, 1>(p, h, first[1]);
		return;
	}

	{
		int row = threadIdx.x / 8, of = row / GROUP;
		unsigned from = of ? first[1] + row - GROUP : first[0] + row;
		int seen = from < p.s ? (int)visible(from, p.t, p.causal, p.diagonal) : 0, scored = (of ? parts[1] : parts[0]) * GROUP;
		float *mine = weights + row * ONCE_STRIDE, w[16], factor = p.scale * LOG2E, m = NEG_INF, sum = 0;
#pragma unroll
		for (int i = 0; i < 4; i++) {
			int c = (i * 8 + threadIdx.x % 8) * 4;
			float4 s = c < scored ? *(const float4 *)(mine + c) : make_float4(0, 0, 0, 0);
			w[4 * i] = s.x, w[4 * i + 1] = s.y, w[4 * i + 2] = s.z, w[4 * i + 3] = s.w;
#pragma unroll
			for (int j = 0; j < 4; j++) {
				w[4 * i + j] = c + j < seen ? w[4 * i + j] * factor : NEG_INF;
				m = fmaxf(m, w[4 * i + j]);
			}
		}
		m = Warp<8>::max(m);
		float to = base(m);
#pragma unroll
		for (int i = 0; i < 4; i++) {
			int c = (i * 8 + threadIdx.x % 8) * 4;
			float four = 0;
#pragma unroll
			for (int j = 0; j < 4; j++) four += w[4 * i + j] = power2(w[4 * i + j] - to) * LIFT;
			sum += four;
			if (c < scored) *(float4 *)(mine + c) = make_float4(w[4 * i], w[4 * i + 1], w[4 * i + 2], w[4 * i + 3]);
		}
		sum = Warp<8>::sum(sum);
		if (threadIdx.x % 8 == 0) {
			inverse[row] = sum > 0 ? 1 / sum : 0;
			if (p.lse && from < p.s && !(of && early == late)) p.lse[h * p.lseStride + from] = sum > 0 ? (m + log2f(sum / LIFT)) * LN2 : NEG_INF;
		}
	}
	__syncthreads();

	float out[2][TILES][4] = {}, y[2][TILES][4] = {}, z[2][TILES][4] = {};
#pragma unroll
	for (int s = 0; s < Own::STEPS; s++) {
		if (s * 8 < keys[0]) {
			unsigned vh[TILES][2], vl[TILES][2];
#pragma unroll
			for (int j = 0; j < TILES; j++)
#pragma unroll
				for (int e = 0; e < 2; e++) split(own.v[s][e][j], vh[j][e], vl[j][e]);
#pragma unroll
			for (int g = 0; g < 2; g++) {
				if (g == 1 && s * 8 >= keys[1]) continue;
				const float *w = weights + (g * GROUP + lane / 4) * ONCE_STRIDE + s * 8 + lane % 4 * 2;
				float2 a = *(const float2 *)w, b = *(const float2 *)(w + 8 * ONCE_STRIDE);
				unsigned ah[4], al[4];
				split(a.x, ah[0], al[0]), split(b.x, ah[1], al[1]), split(a.y, ah[2], al[2]), split(b.y, ah[3], al[3]);
#pragma unroll
				for (int j = 0; j < TILES; j++) {
					multiply32(z[g][j], ah, vl[j][0], vl[j][1]);
					multiply32(y[g][j], ah, vh[j][0], vh[j][1]);
					multiply32(z[g][j], al, vh[j][0], vh[j][1]);
				}
			}
		}
		if (s % 4 != 3) continue;
#pragma unroll
		for (int g = 0; g < 2; g++)
#pragma unroll
			for (int j = 0; j < TILES; j++)
#pragma unroll
				for (int i = 0; i < 4; i++) out[g][j][i] += y[g][j][i] + z[g][j][i], y[g][j][i] = z[g][j][i] = 0;
	}

#pragma unroll
	for (int g = 0; g < 2; g++)
#pragma unroll
		for (int r = 0; r < 2; r++) {
			int row = lane / 4 + r * 8, c = warp * Own::COLS + lane % 4 * 2 * TILES;
			unsigned to = first[g] + row;
			if (g == 1 && early == late || to >= p.s) continue;
			float by = inverse[g * GROUP + row], *dst = at(p.out, h, to);
			float res[4] = {out[g][0][2 * r] * by, out[g][TILES - 1][2 * r + (TILES == 1)] * by, out[g][0][2 * r + 1] * by, out[g][TILES - 1][2 * r + 1] * by};
			if (TILES == 2)
				store4(dst, c, p.d, p.vec && ((unsigned long long)dst & 15) == 0, make_float4(res[0], res[1], res[2], res[3]));
			else if (p.vec && ((unsigned long long)dst & 7) == 0 && c < p.d)
				*(float2 *)(dst + c) = make_float2(res[0], res[1]);
			else {
				if (c < p.d) dst[c] = res[0];
				if (c + 1 < p.d) dst[c + 1] = res[1];
			}
		}
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
