// decode writes softmax(scale * q k^T) v for one query a head, in one launch. The keys are shared out over blocks, so that a
// long cache occupies the whole chip; the block that ends last joins their parts.
//
//   q, out  [heads, 1, d]
//   k, v    [heads/group, t, d]
//   part    [heads, splits, stride]: the weighted sum of the values, then the maximum m and the sum l of a split
//   done    [heads/group * gridDim.z]: blocks of a head that have ended; 0 before and after
//
// A block of 4 warps makes G query heads that share a key head, so that keys and values are read from memory once. Tiles
// of keys and values pass through a ring in shared memory. Scores: warp w multiplies the w-th quarter of the columns, a
// lane has a key of its own, nothing is exchanged but four parts of a sum. Every warp then makes the weights of the tile for
// itself, and the weighted sum of its quarter of the values. A tile's own sum is made first and then added, so that no
// chain of roundings is longer than a tile plus the number of tiles.
//
// Versions: 1. groups of 8 or 16 threads a key, keys and values from memory to registers, parts joined by a second
// launch: 4.4 TB/s at 65536 keys, 32 heads of 128 (H200), but 2.7 with four query heads a key head, where registers ran short;
// 16 us at 128 keys. 2. this.

#include "async.cuh"
#include "common.cuh"

struct Decode {
	Progress progress;
	View out, q, k, v;
	float *part;
	unsigned *done;
	unsigned heads, t, d, group;
	unsigned splits, keys; // keys of a split
	unsigned stages, stride;
	float scale;
	int vec;
};

#define DECODE_BLOCK 128

// Sizes for head dim D and G query heads, in floats. The host computes the same (decode.go).
template <int D, int G> struct DecodeTile {
	static constexpr int KEYS = D > 128 ? 16 : 32;  // of a tile
	static constexpr int LANES = 32 / KEYS;         // to a key, each with a share of the warp's columns
	static constexpr int Q = D / 4;                 // columns of a warp
	static constexpr int C = Q % 32 == 0 ? 32 : Q % 16 == 0 ? 16 : 8; // lanes to a row of values
	static constexpr int SETS = 32 / C;             // rows that a warp reads at a time
	static constexpr int N = Q / C;                 // columns a lane
	static constexpr int KS = D + 4, VS = D + (SETS > 1 ? C : 0); // strides without bank conflicts
	static constexpr int STAGE = KEYS * (KS + VS);
	static constexpr int FIXED = G * D + 4 * G * 32 + 4 * G * KEYS; // queries, parts of scores, weights
};

template <int D, int G> struct DecodeBlock : DecodeTile<D, G> {
	using T = DecodeTile<D, G>;
	float m[G], l[G], acc[G][T::N]; // l: of this lane's keys

	// fetch starts the copies of a tile.
	static __device__ __forceinline__ void fetch(const Decode &p, float *stage, unsigned kv, unsigned key0, unsigned to) {
		float *k = stage, *v = stage + T::KEYS * T::KS;
#pragma unroll
		for (int i = 0; i < T::KEYS * D / 4 / DECODE_BLOCK; i++) {
			int piece = i * DECODE_BLOCK + threadIdx.x, key = piece / (D / 4), c = piece % (D / 4) * 4;
			bool real = key0 + key < to;
			const float *kr = at(p.k, kv, real ? key0 + key : key0), *vr = at(p.v, kv, real ? key0 + key : key0);
			if (p.vec) {
				bool valid = real && c < (int)p.d;
				copyAsync<16>(k + key * T::KS + c, valid ? kr + c : kr, valid);
				copyAsync<16>(v + key * T::VS + c, valid ? vr + c : vr, valid);
			} else {
#pragma unroll
				for (int j = 0; j < 4; j++) {
					bool valid = real && c + j < (int)p.d;
					copyAsync<4>(k + key * T::KS + c + j, valid ? kr + c + j : kr, valid);
					copyAsync<4>(v + key * T::VS + c + j, valid ? vr + c + j : vr, valid);
				}
			}
		}
	}

	// scores writes this warp's part of the scores of a tile.
	__device__ __forceinline__ void scores(const float *q, const float *k, float *parts) {
		int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
		constexpr int COLUMNS = T::Q / T::LANES;
		int c0 = warp * T::Q + lane / T::KEYS * COLUMNS;
		const float *row = k + lane % T::KEYS * T::KS + c0;
		float sum[G] = {};
#pragma unroll
		for (int c = 0; c < COLUMNS; c += 4) {
			float4 x = *(const float4 *)(row + c);
#pragma unroll
			for (int g = 0; g < G; g++) {
				float4 y = *(const float4 *)(q + g * D + c0 + c);
				sum[g] += x.x * y.x;
				sum[g] += x.y * y.y;
				sum[g] += x.z * y.z;
				sum[g] += x.w * y.w;
			}
		}
#pragma unroll
		for (int g = 0; g < G; g++) parts[(warp * G + g) * 32 + lane] = sum[g];
	}

	// weigh makes the weights of a tile of n keys, for this warp's own use, and moves m and l on. keep[g] is what the sums
	// so far must be multiplied by. The keys of one set of lanes stand together.
	__device__ __forceinline__ void weigh(const float *parts, float *weights, float scale, int n, float keep[G]) {
		int lane = threadIdx.x % 32, key = lane % T::KEYS;
		int place = key % T::SETS * (T::KEYS / T::SETS) + key / T::SETS;
#pragma unroll
		for (int g = 0; g < G; g++) {
			float s = 0;
#pragma unroll
			for (int i = 0; i < 4 * T::LANES; i++)
				s += parts[(i / T::LANES * G + g) * 32 + i % T::LANES * T::KEYS + key];
			s = key < n ? s * scale : NEG_INF;
			float max = fmaxf(m[g], Warp<32>::max(s)), w = expf(s - base(max));
			keep[g] = expf(m[g] - base(max));
			l[g] = l[g] * keep[g] + w;
			m[g] = max;
			weights[g * T::KEYS + place] = w; // lanes of one key write the same
		}
		__syncwarp();
	}

	// values adds the weighted values of a tile.
	__device__ __forceinline__ void values(const float *weights, const float *v, const float keep[G]) {
		int warp = threadIdx.x / 32, lane = threadIdx.x % 32, set = lane / T::C;
		const float *from = v + set * T::VS + warp * T::Q + lane % T::C;
		weights += set * (T::KEYS / T::SETS);
		float sum[G][T::N] = {};
#pragma unroll
		for (int i = 0; i < T::KEYS / T::SETS; i += 4) {
			float x[4][T::N];
#pragma unroll
			for (int j = 0; j < 4; j++)
#pragma unroll
				for (int n = 0; n < T::N; n++) x[j][n] = from[(i + j) * T::SETS * T::VS + n * T::C];
#pragma unroll
			for (int g = 0; g < G; g++) {
				float4 w = *(const float4 *)(weights + g * T::KEYS + i);
#pragma unroll
				for (int n = 0; n < T::N; n++) {
					sum[g][n] += w.x * x[0][n];
					sum[g][n] += w.y * x[1][n];
					sum[g][n] += w.z * x[2][n];
					sum[g][n] += w.w * x[3][n];
				}
			}
		}
#pragma unroll
		for (int g = 0; g < G; g++)
#pragma unroll
			for (int n = 0; n < T::N; n++) acc[g][n] = acc[g][n] * keep[g] + sum[g][n];
	}
};

// joinSplits has the block that ends last join the parts of its heads. Several warps share the splits of a head where there
// are fewer heads than warps.
template <int D, int G> __device__ __forceinline__ void joinSplits(const Decode &p, unsigned head0, int heads, float *shared) {
	__shared__ bool last;
	unsigned *done = p.done + blockIdx.y * gridDim.z + blockIdx.z;
	__threadfence(); // this block's part is there before it counts as done
	__syncthreads();
	if (threadIdx.x == 0) last = atomicAdd(done, 1) == p.splits - 1;
	__syncthreads();
	if (!last) return;
	__threadfence();

	constexpr int WARPS = G >= 4 ? 1 : 4 / G; // to a head
	constexpr int N = (D + 127) / 128;        // pieces of 4 columns a lane
	int warp = threadIdx.x / 32, lane = threadIdx.x % 32, share = warp % WARPS;
	for (int g0 = 0; g0 < heads; g0 += 4 / WARPS) {
		int g = g0 + warp / WARPS;
		float l = 0, sum[N][4] = {};
		if (g < heads) {
			const float *part = p.part + (i64)(head0 + g) * p.splits * p.stride, *ml = part + p.stride - 4;
			float m = NEG_INF;
			for (unsigned i = lane; i < p.splits; i += 32) m = fmaxf(m, __ldcg(ml + (i64)i * p.stride));
			m = base(Warp<32>::max(m));
#pragma unroll 4
			for (unsigned i = share; i < p.splits; i += WARPS) {
				float4 end = __ldcg((const float4 *)(ml + (i64)i * p.stride));
				float f = expf(end.x - m);
				l += end.y * f;
#pragma unroll
				for (int n = 0; n < N; n++) {
					unsigned c = (n * 32 + lane) * 4;
					if (c >= p.stride - 4) continue;
					float4 x = __ldcg((const float4 *)(part + (i64)i * p.stride + c));
					sum[n][0] += x.x * f, sum[n][1] += x.y * f, sum[n][2] += x.z * f, sum[n][3] += x.w * f;
				}
			}
		}
		float *mine = shared + warp * (N * 128 + 4);
#pragma unroll
		for (int n = 0; n < N; n++)
#pragma unroll
			for (int i = 0; i < 4; i++) mine[(n * 32 + lane) * 4 + i] = sum[n][i];
		if (lane == 0) mine[N * 128] = l;
		__syncthreads();
		if (g < heads) {
			const float *first = shared + (warp - share) * (N * 128 + 4);
			for (unsigned c = share * 32 + lane; c < p.d; c += WARPS * 32) {
				float x = 0, all = 0;
#pragma unroll
				for (int w = 0; w < WARPS; w++) x += first[w * (N * 128 + 4) + c], all += first[w * (N * 128 + 4) + N * 128];
				at(p.out, head0 + g, 0)[c] = x / all;
			}
		}
		__syncthreads();
	}
	if (threadIdx.x == 0) *done = 0;
}

template <int D, int G> __device__ __forceinline__ void decode(const Decode &p) {
	using T = DecodeTile<D, G>;
	extern __shared__ __align__(16) float shared[];
	float *q = shared, *parts = q + G * D, *weights = parts + 4 * G * 32, *ring = weights + 4 * G * T::KEYS;
	int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
	weights += warp * G * T::KEYS;
	unsigned split = blockIdx.x, kv = blockIdx.y, head0 = kv * p.group + blockIdx.z * G;
	int heads = min(G, (int)(p.group - blockIdx.z * G));
	unsigned from = split * p.keys, to = min(from + p.keys, p.t), tiles = (to - from + T::KEYS - 1) / T::KEYS;

	for (unsigned i = 0; i < p.stages; i++) {
		if (i < tiles) DecodeBlock<D, G>::fetch(p, ring + i * T::STAGE, kv, from + i * T::KEYS, to);
		commitAsync();
	}
	for (int i = threadIdx.x; i < G * D / 4; i += DECODE_BLOCK) {
		int g = i / (D / 4), c = i % (D / 4) * 4;
		*(float4 *)(q + g * D + c) = g < heads ? load4(at(p.q, head0 + g, 0), c, p.d, p.vec) : make_float4(0, 0, 0, 0);
	}
	DecodeBlock<D, G> b;
#pragma unroll
	for (int g = 0; g < G; g++) {
		b.m[g] = NEG_INF, b.l[g] = 0;
#pragma unroll
		for (int n = 0; n < T::N; n++) b.acc[g][n] = 0;
	}
	unsigned slot = 0;
	for (unsigned tile = 0; tile < tiles; tile++) {
		float *stage = ring + slot * T::STAGE, keep[G];
		unsigned key0 = from + tile * T::KEYS;
		waitAsync(p.stages - 1);
		__syncthreads();
		b.scores(q, stage, parts);
		__syncthreads();
		b.weigh(parts, weights, p.scale, (int)min(to - key0, (unsigned)T::KEYS), keep);
		b.values(weights, stage + T::KEYS * T::KS, keep);
		__syncthreads();
		if (tile + p.stages < tiles) DecodeBlock<D, G>::fetch(p, stage, kv, key0 + p.stages * T::KEYS, to);
		commitAsync();
		if (++slot == p.stages) slot = 0;
	}

#pragma unroll
	for (int g = 0; g < G; g++) {
		float l = Warp<T::KEYS>::sum(b.l[g]);
		bool real = g < heads;
		float *part = p.part + ((i64)(head0 + g) * p.splits + split) * p.stride;
#pragma unroll
		for (int n = 0; n < T::N; n++) {
			float x = b.acc[g][n];
#pragma unroll
			for (int d = T::C; d < 32; d *= 2) x += __shfl_xor_sync(~0u, x, d);
			unsigned c = warp * T::Q + n * T::C + lane % T::C;
			if (!real || lane >= T::C) continue;
			if (p.splits > 1 && c < p.stride - 4) part[c] = x;
			if (p.splits == 1 && c < p.d) at(p.out, head0 + g, 0)[c] = x / l;
		}
		if (real && p.splits > 1 && threadIdx.x == 0) part[p.stride - 4] = b.m[g], part[p.stride - 3] = l;
	}
	if (p.splits > 1) joinSplits<D, G>(p, head0, heads, shared);
}

#define DECODE(D, G)                                                                                                   \
	extern "C" __global__ void __launch_bounds__(DECODE_BLOCK) decode_##D##_##G(const __grid_constant__ Decode p) {     \
		begin(p.progress);                                                                                             \
		decode<D, G>(p);                                                                                               \
	}
#define DECODES(D) DECODE(D, 1) DECODE(D, 2) DECODE(D, 4) DECODE(D, 8)
DECODES(32)
DECODES(64)
DECODES(96)
DECODES(128)
DECODES(192)
DECODES(256)
