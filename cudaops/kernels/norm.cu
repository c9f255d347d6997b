// norm writes each row less its mean (where centred), over the root of the mean square of that plus epsilon, times w plus b.
//
//   dst, x  [heads, rows, cols], strides free
//   w, b    [cols], or null
//
// The mean square is taken of the differences, in a second pass over the row. Up to 1024 columns lanes of a warp hold a row in
// registers, few where it is short, up to 8192 a block; a longer row is read three times, twice of them from a cache.
//
// Versions, for rows of 128 on an H200: 1. a warp a row, most of whose loads are empty: LayerNorm 1.2 TB/s, RMSNorm 1.7. 2. 8 lanes a row.

#pragma once

#include "common.cuh"
#include "softmax.cu"

struct Norm {
	Progress progress;
	View dst, x, w, b;
	unsigned heads, rows, cols;
	float epsilon;
	int centred, vec;
};

// less takes the mean away from the 4 elements at column c, of which those behind the row stay 0.
__device__ __forceinline__ float4 less(float4 x, float mean, int c, int cols) {
	return make_float4(c < cols ? x.x - mean : 0, c + 1 < cols ? x.y - mean : 0, c + 2 < cols ? x.z - mean : 0,
	                   c + 3 < cols ? x.w - mean : 0);
}

__device__ __forceinline__ float total(float4 x) { return (x.x + x.y) + (x.z + x.w); }
__device__ __forceinline__ float squares(float4 x) { return (x.x * x.x + x.y * x.y) + (x.z * x.z + x.w * x.w); }

// finish scales 4 elements and stores them.
__device__ __forceinline__ void finish(const Norm &p, float *dst, int c, float4 d, float inverse) {
	float4 y = make_float4(d.x * inverse, d.y * inverse, d.z * inverse, d.w * inverse);
	int cols = (int)p.cols;
	if (p.w.p) {
		float4 w = load4(p.w.p, c, cols, p.vec);
		y.x *= w.x, y.y *= w.y, y.z *= w.z, y.w *= w.w;
	}
	if (p.b.p) {
		float4 b = load4(p.b.p, c, cols, p.vec);
		y.x += b.x, y.y += b.y, y.z += b.z, y.w += b.w;
	}
	store4(dst, c, cols, p.vec, y);
}

// Join adds up over the threads that share a row.
template <int THREADS> struct Join {
	static __device__ __forceinline__ float sum(float x, float *buffer) {
		if constexpr (THREADS <= 32)
			return Warp<THREADS>::sum(x);
		else
			return Block<THREADS>::sum(x, buffer);
	}
};

// THREADS threads hold a row of up to THREADS * PER * 4 columns; a row past the last only keeps others company.
template <int THREADS, int PER> __device__ __forceinline__ void normHeld(const Norm &p, i64 at0, int t) {
	__shared__ float sums[32], squared[32];
	bool real = at0 < (i64)p.heads * p.rows;
	unsigned row = real ? (unsigned)at0 : 0, h = row / p.rows, s = row - h * p.rows;
	const float *src = at(p.x, h, s);
	float *dst = at(p.dst, h, s);
	int cols = (int)p.cols;
	float4 x[PER];
#pragma unroll
	for (int j = 0; j < PER; j++) x[j] = load4(src, (j * THREADS + t) * 4, cols, p.vec);
	if (p.centred) {
		float sum = 0;
#pragma unroll
		for (int j = 0; j < PER; j++) sum += total(x[j]);
		float mean = Join<THREADS>::sum(sum, sums) / cols;
#pragma unroll
		for (int j = 0; j < PER; j++) x[j] = less(x[j], mean, (j * THREADS + t) * 4, cols);
	}
	float square = 0;
#pragma unroll
	for (int j = 0; j < PER; j++) square += squares(x[j]);
	float inverse = 1 / sqrtf(Join<THREADS>::sum(square, squared) / cols + p.epsilon);
	if (!real) return;
#pragma unroll
	for (int j = 0; j < PER; j++) finish(p, dst, (j * THREADS + t) * 4, x[j], inverse);
}

// Lanes of a warp to a row.
#define NORM_LANES(COLS, LANES, PER)                                                                              \
	extern "C" __global__ void __launch_bounds__(BLOCK) norm_##COLS(const __grid_constant__ Norm p) {              \
		begin(p.progress);                                                                                         \
		normHeld<LANES, PER>(p, (i64)blockIdx.x * (BLOCK / LANES) + threadIdx.x / LANES, threadIdx.x % LANES);     \
	}
NORM_LANES(128, 8, 4)
NORM_LANES(256, 16, 4)
NORM_LANES(512, 32, 4)
NORM_LANES(1024, 32, 8)

// A block to a row.
extern "C" __global__ void __launch_bounds__(BLOCK) norm_block(const __grid_constant__ Norm p) {
	begin(p.progress);
	normHeld<BLOCK, 8>(p, blockIdx.x, threadIdx.x);
}

extern "C" __global__ void __launch_bounds__(1024) norm_long(const __grid_constant__ Norm p) {
	begin(p.progress);
	__shared__ float sums[32], squared[32];
	unsigned h = blockIdx.x / p.rows, s = blockIdx.x - h * p.rows;
	const float *src = at(p.x, h, s);
	float *dst = at(p.dst, h, s);
	i64 cols = p.cols, step = 4096;
	float mean = 0, square = 0;
	if (p.centred) {
		float sum = 0;
		for (i64 c = threadIdx.x * 4; c < cols; c += step) sum += total(load4(src, c, cols, p.vec));
		mean = Block<1024>::sum(sum, sums) / cols;
	}
	for (i64 c = threadIdx.x * 4; c < cols; c += step) square += squares(less(load4(src, c, cols, p.vec), mean, c, cols));
	float inverse = 1 / sqrtf(Block<1024>::sum(square, squared) / cols + p.epsilon);
	for (i64 c = threadIdx.x * 4; c < cols; c += step) finish(p, dst, c, less(load4(src, c, cols, p.vec), mean, c, cols), inverse);
}
