// softmax writes the softmax of each row over the columns that the mask shows; hidden columns become 0 and are never read
// (but for those that share 16 bytes with a visible one), and so does a row that sees nothing.
//
//   dst, src  [heads, rows, cols], strides free
//
// A row is read once, held in registers and written once. Up to 1024 columns, lanes of a warp hold a row; a few lanes where it is short,
// so that little is exchanged. Up to 32768, the threads of a block hold one, while the row that the block makes next is on its
// way to shared memory, so that memory is never idle. A longer row is read twice, with a running maximum and sum.
//
// Versions, for 16384 x 16384 on an H200, where a copy makes 4.2 TB/s: 1. a warp or a block to a row: 2.6 TB/s: loads, arithmetic and
// stores of a block took turns. 2. three rows in shared memory, one block a multiprocessor: 3.85. 3. one row, two blocks, whose loads and
// stores meet less often, and elements compared with the mask's end only where it is near: 3.92. For rows of 128: 2. 32 lanes and 8 rows
// each: 2.86. 3. 8 lanes and 1 row: 3.98. Stores past the caches (st.cs) took longer.

#pragma once

#include "async.cuh"
#include "common.cuh"

struct Softmax {
	Progress progress;
	View dst, src;
	unsigned heads, rows;
	i64 cols, diagonal;
	int causal, reserved;
};

// Row is one row of the matrix: its place and how many columns it sees. A row past the last sees nothing.
struct Row {
	const float *src;
	float *dst;
	int n;
	__device__ __forceinline__ Row(const Softmax &p, i64 row) {
		bool real = row < (i64)p.heads * p.rows;
		unsigned h = real ? (unsigned)row / p.rows : 0, s = real ? (unsigned)row - h * p.rows : 0;
		src = at(p.src, h, s);
		dst = real ? at(p.dst, h, s) : nullptr;
		n = real ? (int)visible(s, p.cols, p.causal, p.diagonal) : 0;
	}
};

// Held is one thread's share of a row: N pieces of V columns, piece j at column (j*THREADS + t) * V.
template <int V, int THREADS, int N> struct Held {
	float x[N][V];

	// take reads the visible part, from global memory or from a copy of the row in shared memory; the rest becomes -Inf.
	__device__ __forceinline__ void take(const float *row, int n, int t) {
#pragma unroll
		for (int j = 0; j < N; j++) {
			int c = (j * THREADS + t) * V;
			if (c + V <= n) {
				((Chunk<V> *)x[j])->load(row + c);
				continue;
			}
			Chunk<V> chunk;
			if (c < n) chunk.load(row + c);
#pragma unroll
			for (int v = 0; v < V; v++) x[j][v] = c + v < n ? ((float *)&chunk)[v] : NEG_INF;
		}
	}
	__device__ __forceinline__ float max() const {
		float m = NEG_INF;
#pragma unroll
		for (int j = 0; j < N; j++)
#pragma unroll
			for (int v = 0; v < V; v++) m = fmaxf(m, x[j][v]);
		return m;
	}
	// exp replaces each element by exp(x - m) and returns their sum.
	__device__ __forceinline__ float exp(float m, int n, int t) {
		float sum = 0;
#pragma unroll
		for (int j = 0; j < N; j++)
			if ((j * THREADS + t) * V < n)
#pragma unroll
				for (int v = 0; v < V; v++) sum += x[j][v] = expf(x[j][v] - m);
		return sum;
	}
	__device__ __forceinline__ void store(float *row, int cols, int n, int t, float scale) const {
#pragma unroll
		for (int j = 0; j < N; j++) {
			int c = (j * THREADS + t) * V;
			Chunk<V> chunk;
#pragma unroll
			for (int v = 0; v < V; v++) ((float *)&chunk)[v] = x[j][v] * scale;
			if (c + V > n)
#pragma unroll
				for (int v = 0; v < V; v++)
					if (c + v >= n) ((float *)&chunk)[v] = 0;
			if (c < cols) chunk.store(row + c);
		}
	}
};

// LANES threads hold a row of up to LANES*PER*4 columns.
template <int V, int THREADS, int LANES, int PER> __device__ __forceinline__ void softmaxShort(const Softmax &p) {
	int t = threadIdx.x % LANES;
	Row row(p, (i64)blockIdx.x * (THREADS / LANES) + threadIdx.x / LANES);
	Held<V, LANES, PER * 4 / V> held;
	held.take(row.src, row.n, t);
	float m = base(Warp<LANES>::max(held.max()));
	float sum = Warp<LANES>::sum(held.exp(m, row.n, t));
	// A row that sees only -Inf has sum 0 and becomes NaN, as its formula has it.
	if (row.dst) held.store(row.dst, (int)p.cols, row.n, t, 1 / sum);
}

// Block joins values over the THREADS threads of a block. Two calls in a row need two buffers.
template <int THREADS> struct Block {
	static constexpr int WARPS = THREADS / 32;
	static __device__ __forceinline__ float pass(float x, float *buffer) {
		if (threadIdx.x % 32 == 0) buffer[threadIdx.x / 32] = x;
		__syncthreads();
		return buffer[threadIdx.x % WARPS];
	}
	static __device__ __forceinline__ float max(float x, float *buffer) {
		return Warp<WARPS>::max(pass(Warp<32>::max(x), buffer));
	}
	static __device__ __forceinline__ float sum(float x, float *buffer) {
		return Warp<WARPS>::sum(pass(Warp<32>::sum(x), buffer));
	}
};

// THREADS threads hold a row of up to THREADS*PER*4 columns. A thread copies the elements that it will hold itself, so
// nothing needs a barrier but the two joins.
template <int V, int THREADS, int PER> __device__ __forceinline__ void softmaxWide(const Softmax &p) {
	constexpr int N = PER * 4 / V;
	extern __shared__ __align__(16) float shared[];
	__shared__ float maxima[32], sums[32];
	int t = threadIdx.x, cols = (int)p.cols;
	i64 total = (i64)p.heads * p.rows;

	auto fetch = [&](i64 row) {
		Row r(p, row);
#pragma unroll
		for (int j = 0; j < N; j++) {
			int c = (j * THREADS + t) * V;
			if (c < r.n) copyAsync<V * 4>(shared + c, r.src + c, true);
		}
		commitAsync();
	};
	fetch(blockIdx.x);
	for (i64 row = blockIdx.x; row < total; row += gridDim.x) {
		Row r(p, row);
		Held<V, THREADS, N> held;
		waitAsync(0);
		held.take(shared, r.n, t);
		fetch(row + gridDim.x);

		float m = base(Block<THREADS>::max(held.max(), maxima));
		float sum = Block<THREADS>::sum(held.exp(m, r.n, t), sums);
		held.store(r.dst, cols, r.n, t, 1 / sum);
	}
}

// softmaxLong reads a row twice; the second time it may still be in the L2.
template <int V> __device__ __forceinline__ void softmaxLong(const Softmax &p) {
	constexpr int THREADS = 1024, N = 16 / V; // 16 columns a thread at a time
	__shared__ float maxima[32], sums[32];
	unsigned row = blockIdx.x, h = row / p.rows, s = row - h * p.rows;
	const float *src = at(p.src, h, s);
	float *dst = at(p.dst, h, s);
	i64 n = visible(s, p.cols, p.causal, p.diagonal);

	float top = NEG_INF, sum = 0;
	for (i64 c0 = 0; c0 < n; c0 += THREADS * 16) {
		Held<V, THREADS, N> held;
		int left = (int)min(n - c0, (i64)THREADS * 16);
		held.take(src + c0, left, threadIdx.x);
		float m = fmaxf(top, held.max());
		sum = sum * expf(top - base(m)) + held.exp(base(m), left, threadIdx.x);
		top = m;
	}
	float m = base(Block<THREADS>::max(top, maxima));
	sum = Block<THREADS>::sum(sum * expf(top - m), sums);
	for (i64 c0 = 0; c0 < p.cols; c0 += THREADS * 16) {
		Held<V, THREADS, N> held;
		int left = (int)max((i64)0, min(n - c0, (i64)THREADS * 16)), cols = (int)min(p.cols - c0, (i64)THREADS * 16);
		held.take(src + c0, left, threadIdx.x);
		held.exp(m, left, threadIdx.x);
		held.store(dst + c0, cols, left, threadIdx.x, 1 / sum);
	}
}

#define SHORT(V, WIDTH, THREADS, LANES, PER)                                                                           \
	extern "C" __global__ void __launch_bounds__(THREADS) softmax##V##_##WIDTH(const __grid_constant__ Softmax p) {    \
		begin(p.progress);                                                                                             \
		softmaxShort<V, THREADS, LANES, PER>(p);                                                                       \
	}
#define WIDE(V, WIDTH, THREADS, PER)                                                                                   \
	extern "C" __global__ void __launch_bounds__(THREADS) softmax##V##_##WIDTH(const __grid_constant__ Softmax p) {    \
		begin(p.progress);                                                                                             \
		softmaxWide<V, THREADS, PER>(p);                                                                               \
	}
#define LONG(V)                                                                                                        \
	extern "C" __global__ void __launch_bounds__(1024) softmax##V##_long(const __grid_constant__ Softmax p) {          \
		begin(p.progress);                                                                                             \
		softmaxLong<V>(p);                                                                                             \
	}
#define SOFTMAXES(V)                                                                                                   \
	SHORT(V, 32, 256, 8, 1)                                                                                \
	SHORT(V, 64, 256, 8, 2)                                                                                \
	SHORT(V, 128, 256, 8, 4)                                                                                \
	SHORT(V, 256, 256, 16, 4)                                                                                \
	SHORT(V, 512, 256, 32, 4)                                                                                \
	SHORT(V, 1024, 256, 32, 8)                                                                                \
	WIDE(V, 2048, 128, 4)                                                                                              \
	WIDE(V, 4096, 256, 4)                                                                                              \
	WIDE(V, 8192, 512, 4)                                                                                              \
	WIDE(V, 16384, 512, 8)                                                                                             \
	WIDE(V, 32768, 1024, 8)                                                                                            \
	LONG(V)
SOFTMAXES(4)
SOFTMAXES(1)
