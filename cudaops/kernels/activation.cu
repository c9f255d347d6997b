// activate writes a function of each element, multiply the product of two.
//
//   dst, src, a, b  [heads, rows, cols], strides free
//
// Formulas are those of PyTorch, in f32: x/2 (1 + erf(x/sqrt 2)), x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), x / (1 + e^-x).
//
// Versions: 1. as add.

#pragma once

#include "common.cuh"

struct Activate {
	Progress progress;
	View dst, src;
	Extent extent;
	unsigned kind, reserved;
};

struct Multiply {
	Progress progress;
	View dst, a, b;
	Extent extent;
};

__device__ __forceinline__ float activated(float x, unsigned kind) {
	switch (kind) {
	case 0: return 0.5f * x * (1 + erff(x * 0.70710678f));
	case 1: return 0.5f * x * (1 + tanhf(0.79788456f * (x + 0.044715f * x * x * x)));
	}
	return x / (1 + expf(-x));
}

template <int V> __device__ __forceinline__ void activate(const Activate &p) {
	Chunk<V> x[UNROLL];
	unsigned h, s, c;
#pragma unroll
	for (int u = 0; u < UNROLL; u++)
		if (locate(p.extent, blockIdx.x, u, h, s, c)) x[u].load(at(p.src, h, s) + (i64)c * V);
#pragma unroll
	for (int u = 0; u < UNROLL; u++)
		if (locate(p.extent, blockIdx.x, u, h, s, c)) {
#pragma unroll
			for (int v = 0; v < V; v++) ((float *)&x[u])[v] = activated(((float *)&x[u])[v], p.kind);
			x[u].store(at(p.dst, h, s) + (i64)c * V);
		}
}

template <int V> __device__ __forceinline__ void multiplyElements(const Multiply &p) {
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
#pragma unroll
			for (int v = 0; v < V; v++) ((float *)&x[u])[v] *= ((float *)&y[u])[v];
			x[u].store(at(p.dst, h, s) + (i64)c * V);
		}
}

#define ELEMENTWISE(NAME, TYPE, DO)                                                                                    \
	extern "C" __global__ void __launch_bounds__(BLOCK) NAME##4(const __grid_constant__ TYPE p) {                      \
		begin(p.progress);                                                                                             \
		DO<4>(p);                                                                                                      \
	}                                                                                                                  \
	extern "C" __global__ void __launch_bounds__(BLOCK) NAME##1(const __grid_constant__ TYPE p) {                      \
		begin(p.progress);                                                                                             \
		DO<1>(p);                                                                                                      \
	}

ELEMENTWISE(activate, Activate, activate)
ELEMENTWISE(multiply, Multiply, multiplyElements)
