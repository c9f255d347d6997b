// decode writes softmax(scale * q k^T) v for one query a head. The keys are shared out over blocks, so that a long cache
// occupies the whole chip; decode_merge joins their parts.
//
//   q, out  [heads, 1, d]
//   k, v    [heads/group, t, d]
//   part    [heads, splits, d + 2]: the weighted sum of the values, the maximum m and the sum l of a split
//
// Groups of L threads read a row of keys or values in 16-byte pieces; a group takes every GROUPS-th key of its block's and
// keeps an online softmax of its own for G query heads that share the key head. All of the block's groups are
// joined through shared memory at the end.
//
// Versions: 1. this.

#include "common.cuh"

struct Decode {
	View out, q, k, v;
	float *part;
	unsigned heads, t, d, group;
	unsigned splits, keys; // keys of a split
	float scale;
	int vec;
};

#define DECODE_BLOCK 128

// State is the online softmax of one query head over the keys that a group of threads has seen; acc is one thread's
// share of the columns.
template <int N> struct State {
	float m, l;
	float4 acc[N];
	__device__ __forceinline__ void reset() {
		m = NEG_INF, l = 0;
#pragma unroll
		for (int i = 0; i < N; i++) acc[i] = make_float4(0, 0, 0, 0);
	}
	__device__ __forceinline__ void rescale(float f) {
		l *= f;
#pragma unroll
		for (int i = 0; i < N; i++) acc[i].x *= f, acc[i].y *= f, acc[i].z *= f, acc[i].w *= f;
	}
};

__device__ __forceinline__ float base(float m) { return m == NEG_INF ? 0 : m; }

// L threads a row, N pieces of 4 columns a thread, G query heads, U keys at a time.
template <int L, int N, int G, int U> __device__ __forceinline__ void decode(const Decode &p) {
	constexpr int GROUPS = DECODE_BLOCK / L;
	__shared__ float shared[GROUPS][L * N * 4 + 2];
	unsigned split = blockIdx.x, kv = blockIdx.y, head0 = kv * p.group + blockIdx.z * G;
	int heads = min(G, (int)(p.group - blockIdx.z * G));
	int lane = threadIdx.x % L, group = threadIdx.x / L;
	unsigned from = split * p.keys, to = min(from + p.keys, p.t);

	float4 q[G][N];
	State<N> state[G];
#pragma unroll
	for (int g = 0; g < G; g++) {
		state[g].reset();
#pragma unroll
		for (int i = 0; i < N; i++)
			q[g][i] = g < heads ? load4(at(p.q, head0 + g, 0), (i * L + lane) * 4, p.d, p.vec) : make_float4(0, 0, 0, 0);
	}
	// All threads of a warp make the same number of turns, for the shuffles; a group past the end sees nothing.
	for (unsigned key0 = from; key0 < to; key0 += GROUPS * U) {
		float4 k[U][N], v[U][N];
#pragma unroll
		for (int u = 0; u < U; u++) {
			unsigned key = key0 + u * GROUPS + group;
			int d = key < to ? (int)p.d : 0;
			const float *kr = at(p.k, kv, min(key, to - 1)), *vr = at(p.v, kv, min(key, to - 1));
#pragma unroll
			for (int i = 0; i < N; i++) {
				k[u][i] = load4(kr, (i * L + lane) * 4, d, p.vec);
				v[u][i] = load4(vr, (i * L + lane) * 4, d, p.vec);
			}
		}
#pragma unroll
		for (int g = 0; g < G; g++) {
			State<N> &s = state[g];
			float score[U], max = s.m;
#pragma unroll
			for (int u = 0; u < U; u++) {
				float4 x = make_float4(0, 0, 0, 0);
#pragma unroll
				for (int i = 0; i < N; i++) {
					x.x += q[g][i].x * k[u][i].x, x.y += q[g][i].y * k[u][i].y;
					x.z += q[g][i].z * k[u][i].z, x.w += q[g][i].w * k[u][i].w;
				}
				float sum = (x.x + x.y) + (x.z + x.w);
#pragma unroll
				for (int d = L / 2; d > 0; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
				score[u] = key0 + u * GROUPS + group < to ? sum * p.scale : NEG_INF;
				max = fmaxf(max, score[u]);
			}
			s.rescale(expf(s.m - base(max)));
			s.m = max;
#pragma unroll
			for (int u = 0; u < U; u++) {
				float w = expf(score[u] - base(max));
				s.l += w;
#pragma unroll
				for (int i = 0; i < N; i++) {
					s.acc[i].x += w * v[u][i].x, s.acc[i].y += w * v[u][i].y;
					s.acc[i].z += w * v[u][i].z, s.acc[i].w += w * v[u][i].w;
				}
			}
		}
	}
	for (int g = 0; g < heads; g++) {
		__syncthreads();
		float *mine = shared[group];
#pragma unroll
		for (int x = 0; x < G; x++) // the index of a register array must be known to the compiler
			if (x == g) {
#pragma unroll
				for (int i = 0; i < N; i++) {
					int c = (i * L + lane) * 4;
					mine[c] = state[x].acc[i].x, mine[c + 1] = state[x].acc[i].y;
					mine[c + 2] = state[x].acc[i].z, mine[c + 3] = state[x].acc[i].w;
				}
				if (lane == 0) mine[L * N * 4] = state[x].m, mine[L * N * 4 + 1] = state[x].l;
			}
		__syncthreads();
		float m = NEG_INF, l = 0;
#pragma unroll
		for (int i = 0; i < GROUPS; i++) m = fmaxf(m, shared[i][L * N * 4]);
#pragma unroll
		for (int i = 0; i < GROUPS; i++) l += shared[i][L * N * 4 + 1] * expf(shared[i][L * N * 4] - base(m));
		float *part = p.part + ((i64)(head0 + g) * p.splits + split) * (p.d + 2);
		for (unsigned c = threadIdx.x; c < p.d; c += DECODE_BLOCK) {
			float sum = 0;
#pragma unroll
			for (int i = 0; i < GROUPS; i++) sum += shared[i][c] * expf(shared[i][L * N * 4] - base(m));
			if (p.splits == 1)
				at(p.out, head0 + g, 0)[c] = sum / l;
			else
				part[c] = sum;
		}
		if (p.splits > 1 && threadIdx.x == 0) part[p.d] = m, part[p.d + 1] = l;
	}
}

extern "C" __global__ void __launch_bounds__(DECODE_BLOCK) decode_merge(const __grid_constant__ Decode p) {
	const float *part = p.part + (i64)blockIdx.x * p.splits * (p.d + 2);
	unsigned stride = p.d + 2;
	float m = NEG_INF, l = 0;
	for (unsigned i = 0; i < p.splits; i++) m = fmaxf(m, part[i * stride + p.d]);
	for (unsigned i = 0; i < p.splits; i++) l += part[i * stride + p.d + 1] * expf(part[i * stride + p.d] - base(m));
	for (unsigned c = threadIdx.x; c < p.d; c += DECODE_BLOCK) {
		float sum = 0;
		for (unsigned i = 0; i < p.splits; i++) sum += part[i * stride + c] * expf(part[i * stride + p.d] - base(m));
		at(p.out, blockIdx.x, 0)[c] = sum / l;
	}
}

#define DECODE(D, L, N, G, U)                                                                                          \
	extern "C" __global__ void __launch_bounds__(DECODE_BLOCK) decode_##D##_##G(const __grid_constant__ Decode p) {     \
		decode<L, N, G, U>(p);                                                                                         \
	}
#define DECODES(D, L, N) DECODE(D, L, N, 1, 2) DECODE(D, L, N, 2, 2) DECODE(D, L, N, 4, 1)
DECODES(32, 8, 1)
DECODES(64, 8, 2)
DECODES(96, 8, 3)
DECODES(128, 8, 4)
DECODES(192, 16, 3)
DECODES(256, 16, 4)
