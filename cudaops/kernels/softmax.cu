// softmax writes the softmax of each row over the columns that the mask shows; hidden columns become 0 and are never read,
// and so does a row that sees nothing.
//
//   dst, src  [heads, rows, cols], strides free
//
// A row of at most THREADS*PER*4 columns stays in registers: read once, written once. A longer one is read twice.
//
// Versions: 1. a warp or a block to a row, in registers.

#include "common.cuh"

struct Softmax {
	View dst, src;
	unsigned heads, rows;
	i64 cols, diagonal;
	int causal, reserved;
};

// Join combines partial results over the THREADS threads of a row.
template <int THREADS> struct Join {
	template <typename F> static __device__ __forceinline__ float all(float x, F f, float *shared) {
#pragma unroll
		for (int d = 16; d > 0; d /= 2) x = f(x, __shfl_xor_sync(~0u, x, d));
		if (THREADS == 32) return x;
		__syncthreads();
		if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = x;
		__syncthreads();
		x = shared[threadIdx.x % 32 % (THREADS / 32)];
#pragma unroll
		for (int d = THREADS / 64; d > 0; d /= 2) x = f(x, __shfl_xor_sync(~0u, x, d));
		return x;
	}
};

struct Max {
	__device__ __forceinline__ float operator()(float a, float b) const { return fmaxf(a, b); }
};
struct Sum {
	__device__ __forceinline__ float operator()(float a, float b) const { return a + b; }
};

// A maximum of -Inf (every visible score is -Inf, or there is none) is replaced so that -Inf - max is not NaN.
__device__ __forceinline__ float shift(float max) { return max == NEG_INF ? 0 : max; }

template <int V, int THREADS, int PER> __device__ __forceinline__ void softmax(const Softmax &p) {
	__shared__ float shared[32];
	constexpr int N = PER * 4 / V; // chunks a thread
	unsigned row = THREADS == 32 ? blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32 : blockIdx.x;
	int t = threadIdx.x % THREADS;
	if (row >= p.heads * p.rows) return;
	unsigned h = row / p.rows, s = row - h * p.rows;
	const float *src = at(p.src, h, s);
	float *dst = at(p.dst, h, s);
	int cols = (int)p.cols, n = (int)visible(s, p.cols, p.causal, p.diagonal);

	float x[N][V];
	float max = NEG_INF;
#pragma unroll
	for (int j = 0; j < N; j++) {
		int c = (j * THREADS + t) * V;
		Chunk<V> chunk;
		if (c < n) chunk.load(src + c);
#pragma unroll
		for (int v = 0; v < V; v++) x[j][v] = c + v < n ? ((float *)&chunk)[v] : NEG_INF;
	}
#pragma unroll
	for (int j = 0; j < N; j++)
#pragma unroll
		for (int v = 0; v < V; v++) max = fmaxf(max, x[j][v]);
	max = shift(Join<THREADS>::all(max, Max(), shared));
	float sum = 0;
#pragma unroll
	for (int j = 0; j < N; j++)
#pragma unroll
		for (int v = 0; v < V; v++) sum += x[j][v] = expf(x[j][v] - max);
	sum = Join<THREADS>::all(sum, Sum(), shared);
	float scale = 1 / sum; // a row that sees only -Inf has sum 0 and becomes NaN, as its formula has it
#pragma unroll
	for (int j = 0; j < N; j++) {
		int c = (j * THREADS + t) * V;
		Chunk<V> chunk;
#pragma unroll
		for (int v = 0; v < V; v++) ((float *)&chunk)[v] = c + v < n ? x[j][v] * scale : 0;
		if (c < cols) chunk.store(dst + c);
	}
}

// softmaxLong keeps a running maximum and sum over a first reading of the row.
template <int V> __device__ __forceinline__ void softmaxLong(const Softmax &p) {
	__shared__ float shared[32];
	unsigned row = blockIdx.x, h = row / p.rows, s = row - h * p.rows;
	const float *src = at(p.src, h, s);
	float *dst = at(p.dst, h, s);
	i64 n = visible(s, p.cols, p.causal, p.diagonal);

	float max = NEG_INF, sum = 0;
	for (i64 c = threadIdx.x * V; c < n; c += 1024 * V) {
		Chunk<V> chunk;
		chunk.load(src + c);
		float m = max;
#pragma unroll
		for (int v = 0; v < V; v++)
			if (c + v < n) m = fmaxf(m, ((float *)&chunk)[v]);
		float part = 0;
#pragma unroll
		for (int v = 0; v < V; v++)
			if (c + v < n) part += expf(((float *)&chunk)[v] - shift(m));
		sum = sum * expf(max - shift(m)) + part;
		max = m;
	}
	float all = shift(Join<1024>::all(max, Max(), shared));
	sum = Join<1024>::all(sum * expf(max - all), Sum(), shared);
	float scale = 1 / sum;
	for (i64 c = threadIdx.x * V; c < p.cols; c += 1024 * V) {
		Chunk<V> chunk;
		if (c < n) chunk.load(src + c);
#pragma unroll
		for (int v = 0; v < V; v++) {
			float &x = ((float *)&chunk)[v];
			x = c + v < n ? expf(x - all) * scale : 0;
		}
		chunk.store(dst + c);
	}
}

#define SOFTMAX(V, THREADS, PER, WIDTH)                                                                                \
	extern "C" __global__ void __launch_bounds__(THREADS == 32 ? 256 : THREADS)                                        \
	    softmax##V##_##WIDTH(const __grid_constant__ Softmax p) {                                                      \
		softmax<V, THREADS, PER>(p);                                                                                   \
	}
#define SOFTMAXES(V)                                                                                                   \
	SOFTMAX(V, 32, 1, 128)                                                                                             \
	SOFTMAX(V, 32, 2, 256)                                                                                             \
	SOFTMAX(V, 32, 4, 512)                                                                                             \
	SOFTMAX(V, 32, 8, 1024)                                                                                            \
	SOFTMAX(V, 256, 4, 4096)                                                                                           \
	SOFTMAX(V, 512, 4, 8192)                                                                                           \
	SOFTMAX(V, 512, 8, 16384)                                                                                          \
	SOFTMAX(V, 1024, 8, 32768)
SOFTMAXES(4)
SOFTMAXES(1)
extern "C" __global__ void __launch_bounds__(1024) softmax4_long(const __grid_constant__ Softmax p) { softmaxLong<4>(p); }
extern "C" __global__ void __launch_bounds__(1024) softmax1_long(const __grid_constant__ Softmax p) { softmaxLong<1>(p); }
