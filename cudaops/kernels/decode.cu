// decode writes softmax(scale * q k^T) v for one query a head, in one launch. The keys are shared out over blocks, so that a
// long cache occupies the whole chip; the block that began last joins their parts.
//
//   q, out   [heads, 1, d]
//   k, v     [heads/group, t, d]
//   part     [heads, splits, stride]: the weighted sum of the values, then the maximum m and the sum l of a split; 0 before and after
//   tickets  [heads/group * gridDim.z]: blocks of a head that have begun; 0 before and after
//
// A block of 4 warps makes G query heads that share a key head, so that keys and values are read from memory once, straight to
// registers. L lanes read a row and take U keys at a time. Their G*U scores are summed over the lanes so that each lane ends with one of
// them, and does what follows once. Lanes that share rows keep an online softmax of their own: warps wait for nobody
// until their keys are through. The weighted values of U keys are added up by themselves first, so that chains of roundings are short.
//
// Versions, for 32 heads of 128 on an H200: 1. groups of 8 lanes a key, all lanes with all scores, parts joined by a second launch: with
// four query heads to a key head registers ran short. 2. tiles through a ring in shared memory: 3.94 TB/s at 65536 keys, 15.9 us at 1024; with 8
// key heads, 3.40 TB/s. 3. this: 4.40 TB/s, 13.0 us, 3.9 TB/s, of which 1 us by kernels that come before the last has ended (begin). 4. parts that
// say themselves when they are there: 11.5 us at 1024 keys. 5. parts added by halves. Left out: joining the parts of a cluster of blocks through shared memory (a cluster of
// 4 or 8 does not fill the chip: 18 us), having the L2 fetch the first keys while the kernel before still runs (14.8 us).

#include "common.cuh"

// A Flagged number is written, and read, as 8 bytes at once: so no number is read before it is there, and nobody needs to wait until what
// was written can be read, or for a word that says so. Where it is read it is empty again.
struct Flagged {
	float x;
	unsigned full;
};
struct Decode {
	Progress progress;
	View out, q, k, v;
	Flagged *part;
	unsigned *tickets;
	unsigned heads, t, d, group;
	unsigned splits, keys; // keys of a split
	unsigned stride;
	float scale;
	int vec, reserved;
};

// sumShared sums M values over L lanes, which each have their own of every value. Lane l of the L ends with that of value l / (L/M).
template <int M, int L> __device__ __forceinline__ float sumShared(const float x[M]) {
	if constexpr (L == 1)
		return x[0];
	else if constexpr (M == 1) {
		float sum = x[0] + __shfl_xor_sync(~0u, x[0], L / 2);
		return sumShared<1, L / 2>(&sum);
	} else {
		bool upper = threadIdx.x & (L / 2);
		float half[M / 2];
#pragma unroll
		for (int i = 0; i < M / 2; i++) half[i] = (upper ? x[i + M / 2] : x[i]) + __shfl_xor_sync(~0u, upper ? x[i] : x[i + M / 2], L / 2);
		return sumShared<M / 2, L / 2>(half);
	}
}

// DecodeState is the online softmax of G heads over the keys that L lanes have seen. m and l are of the head whose scores the lane gets,
// l of those keys alone; acc is of the lane's columns.
template <int D, int G, int L, int U> struct DecodeState {
	static constexpr int N = D / 4 / L, M = G * U, EACH = L / M; // EACH lanes have the same score
	float m, l;
	float4 acc[G][N];

	__device__ __forceinline__ void clear() {
		m = NEG_INF, l = 0;
#pragma unroll
		for (int g = 0; g < G; g++)
#pragma unroll
			for (int n = 0; n < N; n++) acc[g][n] = make_float4(0, 0, 0, 0);
	}

	static __device__ __forceinline__ void read(float4 x[U][N], const View &v, unsigned kv, unsigned key0, unsigned to, int d, bool vec) {
#pragma unroll
		for (int u = 0; u < U; u++) {
			unsigned key = key0 + u * (32 / L);
			const float *row = at(v, kv, key);
#pragma unroll
			for (int n = 0; n < N; n++)
				x[u][n] = load4(row, (n * L + threadIdx.x % L) * 4, key < to ? d : 0, vec);
		}
	}

	// keys takes U keys in, of which the first n exist.
	__device__ __forceinline__ void keys(const float4 q[G][N], const float4 k[U][N], const float4 v[U][N], int n, float scale) {
		float x[M];
#pragma unroll
		for (int g = 0; g < G; g++)
#pragma unroll
			for (int u = 0; u < U; u++) {
				float sum = 0;
#pragma unroll
				for (int i = 0; i < N; i++) {
					sum += q[g][i].x * k[u][i].x;
					sum += q[g][i].y * k[u][i].y;
					sum += q[g][i].z * k[u][i].z;
					sum += q[g][i].w * k[u][i].w;
				}
				x[g * U + u] = sum;
			}
		int lane = threadIdx.x % 32, own = lane % L / EACH;
		float s = sumShared<M, L>(x) * scale;
		if (own % U >= n) s = NEG_INF;
		float max = s;
#pragma unroll
		for (int d = U / 2; d > 0; d /= 2) max = fmaxf(max, __shfl_xor_sync(~0u, max, d * EACH));
		max = fmaxf(max, m);
		float w = expf(s - base(max));
		if (__any_sync(~0u, max != m)) {
			float keep = expf(m - base(max));
			l *= keep;
			m = max;
#pragma unroll
			for (int g = 0; g < G; g++) {
				float f = __shfl_sync(~0u, keep, lane / L * L + g * U * EACH);
#pragma unroll
				for (int i = 0; i < N; i++) acc[g][i].x *= f, acc[g][i].y *= f, acc[g][i].z *= f, acc[g][i].w *= f;
			}
		}
		l += w;
#pragma unroll
		for (int g = 0; g < G; g++) {
			float4 sum[N];
#pragma unroll
			for (int u = 0; u < U; u++) {
				float f = __shfl_sync(~0u, w, lane / L * L + (g * U + u) * EACH);
#pragma unroll
				for (int i = 0; i < N; i++) {
					if (u == 0)
						sum[i] = make_float4(f * v[u][i].x, f * v[u][i].y, f * v[u][i].z, f * v[u][i].w);
					else
						sum[i].x += f * v[u][i].x, sum[i].y += f * v[u][i].y, sum[i].z += f * v[u][i].z, sum[i].w += f * v[u][i].w;
				}
			}
#pragma unroll
			for (int i = 0; i < N; i++) acc[g][i].x += sum[i].x, acc[g][i].y += sum[i].y, acc[g][i].z += sum[i].z, acc[g][i].w += sum[i].w;
		}
	}
};

// What the blocks of a cluster (Hopper) read of each other's shared memory, and where they wait for each other. Elsewhere a cluster is one block.
__device__ __forceinline__ void clusterSync(unsigned cluster) {
#if __CUDA_ARCH__ >= 900
	if (cluster > 1) {
		asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
		return;
	}
#endif
	__syncthreads();
}
__device__ __forceinline__ float4 clusterLoad(const float *shared, unsigned rank, unsigned cluster) {
#if __CUDA_ARCH__ >= 900
	if (cluster > 1) {
		float4 x;
		asm volatile("{ .reg .u32 a; mapa.shared::cluster.u32 a, %4, %5; ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [a]; }"
		             : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w)
		             : "r"((unsigned)__cvta_generic_to_shared(shared)), "r"(rank));
		return x;
	}
#endif
	return *(const float4 *)shared;
}

// added is the sum of N states relative to a maximum m: piece x of the weighted values, from column c, and their l, which stands behind its own m
// from column d on. State j begins at from + j * stride. They are added by halves, so that 8 states leave 3 roundings behind each other, not 8.
template <int N> __device__ __forceinline__ void added(const float *from, int stride, int c, int d, float m, float4 &x, float &l) {
	if constexpr (N == 1) {
		float2 end = *(const float2 *)(from + d);
		float4 y = *(const float4 *)(from + c);
		float f = expf(end.x - base(m));
		l = f * end.y;
		x = make_float4(f * y.x, f * y.y, f * y.z, f * y.w);
	} else {
		float4 y;
		float other;
		added<N / 2>(from, stride, c, d, m, x, l);
		added<N / 2>(from + N / 2 * stride, stride, c, d, m, y, other);
		l += other;
		x.x += y.x, x.y += y.y, x.z += y.z, x.w += y.w;
	}
}

// join makes one state of N.
template <int N> __device__ __forceinline__ void join(const float *from, int stride, int c, int d, float4 &x, float &m, float &l) {
	m = NEG_INF;
#pragma unroll
	for (int j = 0; j < N; j++) m = fmaxf(m, from[j * stride + d]);
	added<N>(from, stride, c, d, m, x, l);
}

__device__ __forceinline__ void send(Flagged *to, float x, float y) {
#ifdef EMULATED
	to[0] = {x, 1}, to[1] = {y, 1};
#else
	asm volatile("{ .reg .b64 a, b; mov.b64 a, {%1, %3}; mov.b64 b, {%2, %3}; st.volatile.global.v2.b64 [%0], {a, b}; }" ::"l"(to), "r"(__float_as_int(x)),
	             "r"(__float_as_int(y)), "r"(1) : "memory");
#endif
}
__device__ __forceinline__ bool received(const Flagged *from, float2 &x) {
#ifdef EMULATED
	x = make_float2(from[0].x, from[1].x);
	return from[0].full && from[1].full;
#else
	unsigned a, b, c, d;
	asm volatile("{ .reg .b64 a, b; ld.volatile.global.v2.b64 {a, b}, [%4]; mov.b64 {%0, %1}, a; mov.b64 {%2, %3}, b; }"
	             : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "l"(from) : "memory");
	x = make_float2(__int_as_float(a), __int_as_float(c));
	return b & d;
#endif
}
__device__ __forceinline__ void empty(Flagged *at) { *(float4 *)at = make_float4(0, 0, 0, 0); } // two of them

// joinSplits has one block join the parts of its heads, as they come. Several threads share the splits of a pair of columns.
template <int D, int G, int THREADS> __device__ __forceinline__ void joinSplits(const Decode &p, unsigned head0, int heads, float *shared) {
	constexpr int FLAGGED = 8; // that a thread asks for at a time
	constexpr int ITEMS = G * D / 2, SHARES = ITEMS < THREADS ? THREADS / ITEMS : 1, STRIDE = D + 4;
	Flagged *parts = p.part + (i64)head0 * p.splits * p.stride;
	int share = threadIdx.x / ITEMS % SHARES;
	for (int i = SHARES > 1 ? threadIdx.x % ITEMS : threadIdx.x; i < ITEMS; i += THREADS) {
		int g = i / (D / 2), c = i % (D / 2) * 2;
		if (g >= heads) break;
		float m = NEG_INF, l = 0;
		float2 sum = make_float2(0, 0);
		bool real = c < (int)p.stride - 2;
		for (unsigned split = share; split < p.splits; split += FLAGGED * SHARES) {
			float2 x[FLAGGED], end[FLAGGED];
			bool missing = true;
			while (missing) {
				missing = false;
#pragma unroll
				for (int j = 0; j < FLAGGED; j++) {
					unsigned at = min(split + j * SHARES, p.splits - 1);
					const Flagged *part = parts + ((i64)g * p.splits + at) * p.stride;
					missing |= !received(part + p.stride - 2, end[j]);
					x[j] = make_float2(0, 0);
					if (real) missing |= !received(part + c, x[j]);
				}
			}
			float max = m;
#pragma unroll
			for (int j = 0; j < FLAGGED; j++) {
				if (split + j * SHARES >= p.splits) end[j].x = NEG_INF, end[j].y = 0, x[j] = make_float2(0, 0);
				max = fmaxf(max, end[j].x);
			}
			float keep = expf(m - base(max));
			m = max;
			l *= keep, sum.x *= keep, sum.y *= keep;
#pragma unroll
			for (int j = 0; j < FLAGGED; j++) {
				float f = expf(end[j].x - base(max));
				end[j].y *= f, x[j].x *= f, x[j].y *= f;
			}
#pragma unroll
			for (int n = FLAGGED / 2; n > 0; n /= 2)
#pragma unroll
				for (int j = 0; j < n; j++) end[j].y += end[j + n].y, x[j].x += x[j + n].x, x[j].y += x[j + n].y;
			l += end[0].y, sum.x += x[0].x, sum.y += x[0].y;
		}
		float *state = shared + (share * G + g) * STRIDE;
		*(float2 *)(state + c) = sum;
		if (c == 0) *(float2 *)(state + D) = make_float2(m, l);
	}
	__syncthreads();
	for (int i = threadIdx.x; i < heads * D / 4; i += THREADS) {
		int g = i / (D / 4), c = i % (D / 4) * 4;
		float4 x;
		float m, l;
		join<SHARES>(shared + g * STRIDE, G * STRIDE, c, D, x, m, l);
		store4(at(p.out, head0 + g, 0), c, p.d, p.vec, make_float4(x.x / l, x.y / l, x.z / l, x.w / l));
	}
	for (unsigned i = threadIdx.x; i < heads * p.splits * p.stride / 2; i += THREADS) empty(parts + 2 * i);
	if (threadIdx.x == 0) p.tickets[blockIdx.y * gridDim.z + blockIdx.z] = 0;
}

template <int D, int G, int L, int U, int THREADS> __device__ __forceinline__ void decode(const Decode &p) {
	using State = DecodeState<D, G, L, U>;
	constexpr int N = State::N, SETS = THREADS / L, WARPS = THREADS / 32, STRIDE = D + 4; // STRIDE: of a set's state
	constexpr int SHARES = G * D / 2 < THREADS ? THREADS / (G * D / 2) : 1;
	__shared__ __align__(16) float shared[(SETS > SHARES ? SETS : SHARES) * G * STRIDE];
	__shared__ unsigned ticket;
	unsigned split = blockIdx.x, kv = blockIdx.y, head0 = kv * p.group + blockIdx.z * G, mine = 0;
	int heads = min(G, (int)(p.group - blockIdx.z * G)), lane = threadIdx.x % L, set = threadIdx.x / L;
	unsigned to = min((split + 1) * p.keys, p.t);
	constexpr int WARP = 32 / L * U; // keys that a warp takes at a time

	// The block with the last ticket joins the parts: the others have begun, so that it does not wait in vain.
	if (p.splits > 1 && threadIdx.x == 0) mine = atomicAdd(p.tickets + blockIdx.y * gridDim.z + blockIdx.z, 1);
	State state;
	state.clear();
	float4 q[G][N];
#pragma unroll
	for (int g = 0; g < G; g++)
#pragma unroll
		for (int n = 0; n < N; n++)
			q[g][n] = g < heads ? load4(at(p.q, head0 + g, 0), (n * L + lane) * 4, p.d, p.vec) : make_float4(0, 0, 0, 0);
	for (unsigned warp0 = split * p.keys + threadIdx.x / 32 * WARP; warp0 < to; warp0 += WARPS * WARP) {
		float4 k[U][N], v[U][N];
		unsigned key0 = warp0 + threadIdx.x % 32 / L;
		State::read(k, p.k, kv, key0, to, p.d, p.vec);
		State::read(v, p.v, kv, key0, to, p.d, p.vec);
		state.keys(q, k, v, key0 < to ? ((int)(to - key0) + 32 / L - 1) / (32 / L) : 0, p.scale);
	}

	// The sets of the block are joined: each leaves its state in shared memory.
	float l = state.l;
#pragma unroll
	for (int d = U / 2; d > 0; d /= 2) l += __shfl_xor_sync(~0u, l, d * State::EACH);
#pragma unroll
	for (int g = 0; g < G; g++) {
		float *mine = shared + (set * G + g) * STRIDE;
#pragma unroll
		for (int n = 0; n < N; n++) *(float4 *)(mine + (n * L + lane) * 4) = state.acc[g][n];
		if (lane == g * U * State::EACH) *(float2 *)(mine + D) = make_float2(state.m, l);
	}
	if (threadIdx.x == 0) ticket = mine;
	__syncthreads();
	for (int i = threadIdx.x; i < heads * D / 4; i += THREADS) {
		int g = i / (D / 4), c = i % (D / 4) * 4;
		float4 x;
		float m, l;
		join<SETS>(shared + g * STRIDE, G * STRIDE, c, D, x, m, l);
		if (p.splits == 1) {
			store4(at(p.out, head0 + g, 0), c, p.d, p.vec, make_float4(x.x / l, x.y / l, x.z / l, x.w / l));
			continue;
		}
		Flagged *part = p.part + ((i64)(head0 + g) * p.splits + split) * p.stride;
		if (c < (int)p.stride - 2) send(part + c, x.x, x.y), send(part + c + 2, x.z, x.w);
		if (c == 0) send(part + p.stride - 2, m, l);
	}
	if (p.splits == 1 || ticket != p.splits - 1) return;
	__syncthreads(); // shared memory serves again
	joinSplits<D, G, THREADS>(p, head0, heads, shared);
}

// L lanes a row, U keys at a time, BLOCKS blocks of THREADS on a multiprocessor. The host knows the last two (decode.go).
#define DECODE(D, G, L, U, THREADS, BLOCKS)                                                                            \
	extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) decode_##D##_##G(const __grid_constant__ Decode p) { \
		begin(p.progress);                                                                                             \
		decode<D, G, L, U, THREADS>(p);                                                                                \
	}
DECODE(32, 1, 8, 4, 128, 4)
DECODE(32, 2, 8, 4, 128, 4)
DECODE(32, 4, 8, 2, 128, 4)
DECODE(32, 8, 8, 1, 128, 4)
DECODE(64, 1, 16, 4, 128, 4)
DECODE(64, 2, 16, 4, 128, 4)
DECODE(64, 4, 16, 4, 256, 2)
DECODE(64, 8, 16, 2, 128, 4)
DECODE(128, 1, 16, 4, 128, 4)
DECODE(128, 2, 32, 8, 128, 4)
DECODE(128, 4, 32, 4, 256, 2)
DECODE(128, 8, 32, 4, 128, 3)
DECODE(256, 1, 32, 4, 128, 4)
DECODE(256, 2, 32, 4, 128, 4)
DECODE(256, 4, 32, 4, 128, 3)
DECODE(256, 8, 32, 2, 128, 2)
