// gemv is gemm (gemm.cu) for few rows of a: a warp reads C rows of b once, U pieces of 4 elements a lane at a time, and multiplies them with R
// rows of a, which stay in the caches.
//
// Bound by memory: all of b passes through.
//
// Versions, for 1 x 4096 x 12288 on an H200: 1. a warp a row of b: 72 us (gemm_16: 245). 2. two rows, blocks of 128 threads: 51 us. Left out:
// four rows (50 to 55 us), and having the L2 fetch a block's rows while the kernel before still runs (59).

#pragma once

#include "gemm.cu"

#define GEMV_BLOCK 128

template <int R, int C, int U> __device__ __forceinline__ void gemv(const Gemm &p) {
	unsigned h = blockIdx.z, row0 = blockIdx.y * R, n0 = (blockIdx.x * (GEMV_BLOCK / 32) + threadIdx.x / 32) * C, lane = threadIdx.x % 32;
	if (n0 >= p.n) return;
	bool vec = p.vec & 1;
	float sum[R][C][4] = {};
	for (unsigned k0 = lane * 4; k0 < p.k; k0 += 128 * U) {
		float4 y[C][U];
#pragma unroll
		for (int c = 0; c < C; c++)
#pragma unroll
			for (int u = 0; u < U; u++) y[c][u] = load4(at(p.b, h / p.group, min(n0 + c, p.n - 1)), k0 + u * 128, p.k, vec);
#pragma unroll
		for (int r = 0; r < R; r++) {
			float4 x[U];
#pragma unroll
			for (int u = 0; u < U; u++) x[u] = load4(at(p.a, h, min(row0 + r, p.m - 1)), k0 + u * 128, p.k, vec);
#pragma unroll
			for (int c = 0; c < C; c++)
#pragma unroll
				for (int u = 0; u < U; u++) {
					sum[r][c][0] += x[u].x * y[c][u].x;
					sum[r][c][1] += x[u].y * y[c][u].y;
					sum[r][c][2] += x[u].z * y[c][u].z;
					sum[r][c][3] += x[u].w * y[c][u].w;
				}
		}
	}
#pragma unroll
	for (int r = 0; r < R; r++)
#pragma unroll
		for (int c = 0; c < C; c++) {
			float *s = sum[r][c], x = Warp<32>::sum((s[0] + s[1]) + (s[2] + s[3]));
			if (lane == 0 && row0 + r < p.m && n0 + c < p.n) at(p.c, h, row0 + r)[n0 + c] = p.alpha * x + (p.bias ? p.bias[n0 + c] : 0);
		}
}

extern "C" __global__ void __launch_bounds__(GEMV_BLOCK, 4) gemv_1(const __grid_constant__ Gemm p) {
	begin(p.progress);
	gemv<1, 2, 8>(p);
}
extern "C" __global__ void __launch_bounds__(GEMV_BLOCK, 4) gemv_4(const __grid_constant__ Gemm p) {
	begin(p.progress);
	gemv<4, 2, 4>(p);
}
