// Slices of a matrix on their way through shared memory, for products of matrices.
#pragma once

#include "common.cuh"

#define BK 16 // of the dimension that is summed over, at a time

// Slice loads ROWS x BK of a matrix to registers, then to shared memory, transposed.
template <int ROWS> struct Slice {
	static constexpr int N = (ROWS * BK / 4 + BLOCK - 1) / BLOCK;
	float4 x[N];
	__device__ __forceinline__ void load(const float *p, i64 stride, unsigned row0, unsigned rows, unsigned k0, unsigned k,
	                                     bool vec) {
#pragma unroll
		for (int i = 0; i < N; i++) {
			unsigned t = i * BLOCK + threadIdx.x, row = row0 + t / (BK / 4), c = k0 + t % (BK / 4) * 4;
			x[i] = make_float4(0, 0, 0, 0);
			if (t < ROWS * BK / 4 && row < rows) x[i] = load4(p + row * stride, c, k, vec);
		}
	}
	__device__ __forceinline__ void store(float (*tile)[ROWS + 4]) const {
#pragma unroll
		for (int i = 0; i < N; i++) {
			unsigned t = i * BLOCK + threadIdx.x, row = t / (BK / 4), c = t % (BK / 4) * 4;
			if (t >= ROWS * BK / 4) continue;
			tile[c][row] = x[i].x;
			tile[c + 1][row] = x[i].y;
			tile[c + 2][row] = x[i].z;
			tile[c + 3][row] = x[i].w;
		}
	}
};

// Rows loads BK x COLS of a matrix to registers, then to shared memory, as it lies.
template <int COLS> struct Rows {
	static constexpr int N = BK * COLS / 4 / BLOCK;
	float4 x[N];
	__device__ __forceinline__ void load(const View &m, i64 head, unsigned row0, unsigned rows, unsigned col0, unsigned cols,
	                                     bool vec) {
#pragma unroll
		for (int i = 0; i < N; i++) {
			unsigned t = i * BLOCK + threadIdx.x, row = row0 + t / (COLS / 4), c = col0 + t % (COLS / 4) * 4;
			x[i] = make_float4(0, 0, 0, 0);
			if (row < rows) x[i] = load4(at(m, head, row), c, cols, vec);
		}
	}
	__device__ __forceinline__ void store(float (*tile)[COLS + 4]) const {
#pragma unroll
		for (int i = 0; i < N; i++) {
			unsigned t = i * BLOCK + threadIdx.x;
			*(float4 *)&tile[t / (COLS / 4)][t % (COLS / 4) * 4] = x[i];
		}
	}
};
