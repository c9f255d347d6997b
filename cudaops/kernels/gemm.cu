// gemm writes alpha * a b^T + bias for every head: the scores (a is q, b is k, group query heads to a key head) and the
// linear layer (one head, b the weights).
//
//   a     [heads, m, k]
//   b     [heads/group, n, k]
//   c     [heads, m, n]
//   bias  [n], or null
//
// A block of 256 threads makes a tile of BM x 128 in FFMA; a thread makes BM/16 rows of 2 x 4 columns. Slices of 16 of k
// pass through shared memory, two at a time: one is used while the next is loaded.
//
// Versions: 1. this, for BM 128 and, where there are few rows, BM 16.

#pragma once

#include "slice.cuh"

struct Gemm {
	Progress progress;
	View a, b, c;
	const float *bias;
	unsigned m, n, k, group;
	float alpha;
	int vec; // bit 0: the rows of a and b are aligned to 16 bytes and k is a multiple of 4; bit 1: c and n likewise
};

#define BN 128

// Slices is what a block of gemm keeps in shared memory.
template <int BM> struct Slices {
	float a[2][BK][BM + 4], b[2][BK][BN + 4];
};

// gemm makes the tile from row0 and col0 of head h.
template <int BM> __device__ __forceinline__ void gemm(const Gemm &p, Slices<BM> &shared, unsigned h, unsigned row0, unsigned col0) {
	constexpr int RM = BM / 16;
	auto &as = shared.a;
	auto &bs = shared.b;
	const float *a = p.a.p + h * p.a.hs, *b = p.b.p + h / p.group * p.b.hs;
	int tx = threadIdx.x % 16, ty = threadIdx.x / 16;

	Slice<BM> sa;
	Slice<BN> sb;
	float acc[RM][8] = {};
	sa.load(a, p.a.rs, row0, p.m, 0, p.k, p.vec & 1);
	sb.load(b, p.b.rs, col0, p.n, 0, p.k, p.vec & 1);
	sa.store(as[0]);
	sb.store(bs[0]);
	__syncthreads();
	int now = 0;
	for (unsigned k0 = 0; k0 < p.k; k0 += BK) {
		bool more = k0 + BK < p.k;
		if (more) {
			sa.load(a, p.a.rs, row0, p.m, k0 + BK, p.k, p.vec & 1);
			sb.load(b, p.b.rs, col0, p.n, k0 + BK, p.k, p.vec & 1);
		}
#pragma unroll
		for (int kk = 0; kk < BK; kk++) {
			float x[RM], y[8];
#pragma unroll
			for (int i = 0; i < RM; i++) x[i] = as[now][kk][ty * RM + i];
			*(float4 *)&y[0] = *(float4 *)&bs[now][kk][tx * 4];
			*(float4 *)&y[4] = *(float4 *)&bs[now][kk][64 + tx * 4];
#pragma unroll
			for (int i = 0; i < RM; i++)
#pragma unroll
				for (int j = 0; j < 8; j++) acc[i][j] += x[i] * y[j];
		}
		now ^= 1;
		if (more) {
			sa.store(as[now]);
			sb.store(bs[now]);
		}
		__syncthreads();
	}
#pragma unroll
	for (int i = 0; i < RM; i++) {
		unsigned row = row0 + ty * RM + i;
		if (row >= p.m) continue;
		float *c = at(p.c, h, row);
#pragma unroll
		for (int half = 0; half < 2; half++) {
			unsigned col = col0 + half * 64 + tx * 4;
			float4 bias = make_float4(0, 0, 0, 0);
			if (p.bias) bias = load4(p.bias, col, p.n, false);
			const float *x = &acc[i][half * 4];
			store4(c, col, p.n, p.vec & 2,
			       make_float4(p.alpha * x[0] + bias.x, p.alpha * x[1] + bias.y, p.alpha * x[2] + bias.z, p.alpha * x[3] + bias.w));
		}
	}
}

extern "C" __global__ void __launch_bounds__(BLOCK) gemm_128(const __grid_constant__ Gemm p) {
	begin(p.progress);
	__shared__ __align__(16) Slices<128> shared;
	gemm<128>(p, shared, blockIdx.z, blockIdx.x * 128, blockIdx.y * BN);
}
extern "C" __global__ void __launch_bounds__(BLOCK) gemm_16(const __grid_constant__ Gemm p) {
	begin(p.progress);
	__shared__ __align__(16) Slices<16> shared;
	gemm<16>(p, shared, blockIdx.z, blockIdx.x * 16, blockIdx.y * BN);
}
