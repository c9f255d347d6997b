// add writes a + b.
//
//   dst, a, b  [heads, rows, cols], strides free
//
// Versions: 1. as gather, with two sources.

#include "common.cuh"

struct Add {
	Progress progress;
	View dst, a, b;
	Extent extent;
};

template <int V> __device__ __forceinline__ void add(const Add &p) {
	Chunk<V> x[UNROLL], y[UNROLL];
	unsigned h, s, c;
#pragma unroll
	for (int u = 0; u < UNROLL; u++)
		if (locate(p.extent, blockIdx.x, u, h, s, c)) {
			x[u].load(at(p.a, h, s) + (i64)c * V);
			y[u].load(at(p.b, h, s) + (i64)c * V);
		}
#pragma unroll
	for (int u = 0; u < UNROLL; u++)
		if (locate(p.extent, blockIdx.x, u, h, s, c)) {
			x[u].add(y[u]);
			x[u].store(at(p.dst, h, s) + (i64)c * V);
		}
}

extern "C" __global__ void __launch_bounds__(BLOCK) add4(const __grid_constant__ Add p) {
	begin(p.progress);
	add<4>(p);
}
extern "C" __global__ void __launch_bounds__(BLOCK) add1(const __grid_constant__ Add p) {
	begin(p.progress);
	add<1>(p);
}
