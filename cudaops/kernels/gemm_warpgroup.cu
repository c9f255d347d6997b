// gemm_warpgroup is gemm (gemm.cu) for Hopper, to f32 accuracy on tensor cores: fp16x3 (tensor.cuh), over the panels that halves_rows makes.
//
// A block of two warpgroups makes a tile of 128 x 128, 64 rows each. Panels of 64 of k come by bulk copies, three at a time, which one thread
// starts. The large products of 128 of k are made by themselves and then added to a sum in registers; the cross terms, 2^-11 as large, have
// one accumulator for all of k. Where the pairs do not hold a block of rows, gemm's own code makes the tile, in FFMA.
//
// Bound by the tensor cores, of whose cycles it uses 84% on an H200 (ncu), and close to what the L2 cache delivers (7 TB/s).
//
// Versions: 1. this: 1.82 ms for 4096 x 4096 x 12288, where gemm.cu takes 10.7.

#include "gemm.cu"
#include "warpgroup.cuh"

struct GemmHalves {
	Gemm gemm;
	half16 *a, *b; // panels of halves_rows
	float *aFactors, *bFactors, *aHolds, *bHolds;
	unsigned aBlocks, bBlocks, count, reserved;
};

#ifdef WARPGROUP

__device__ __noinline__ void gemmInFull(const Gemm &p, Slices<128> &shared, unsigned h, unsigned row0, unsigned col0) {
	gemm<128>(p, shared, h, row0, col0);
}

template <int STAGES> __device__ __forceinline__ void gemmWarpgroup(const GemmHalves &all) {
	const Gemm &p = all.gemm;
	constexpr int PANEL = 256 * 64, HALF = 128 * 64; // fp16 numbers
	extern __shared__ __align__(16) float shared[];
	__shared__ Barrier full[STAGES], used[STAGES];
	// Blocks that run together share panels: 8 rows of tiles at a time.
	unsigned band = 8 * all.bBlocks, first = blockIdx.x / band * 8, high = min(all.aBlocks - first, 8u), i = blockIdx.x % band;
	unsigned row = first + i % high, col = i / high, h = blockIdx.y;
	i64 a = (i64)h * all.aBlocks + row, b = (i64)(h / p.group) * all.bBlocks + col;
	float holds = 1;
#pragma unroll
	for (int i = 0; i < 8; i++) holds = fminf(holds, fminf(all.aHolds[a * 8 + i], all.bHolds[b * 8 + i]));
	if (holds == 0) {
		gemmInFull(p, *(Slices<128> *)shared, h, row * 128, col * 128);
		return;
	}
	half16 *stage = (half16 *)(shared + (1024 - sharedAddress(shared) % 1024) % 1024 / 4);
	if (threadIdx.x == 0) {
#pragma unroll
		for (int s = 0; s < STAGES; s++) full[s].make(1), used[s].make(BLOCK / 32);
		barriersMade();
	}
	__syncthreads();
	auto load = [&](unsigned panel) {
		unsigned s = panel % STAGES;
		full[s].arrive(4 * PANEL);
		copyBulk(stage + s * 2 * PANEL, all.a + (a * all.count + panel) * PANEL, 2 * PANEL, full[s]);
		copyBulk(stage + s * 2 * PANEL + PANEL, all.b + (b * all.count + panel) * PANEL, 2 * PANEL, full[s]);
	};
	if (threadIdx.x == 0)
		for (unsigned s = 0; s < STAGES - 1 && s < all.count; s++) load(s);

	int lane = threadIdx.x % 32, group = threadIdx.x / 128;
	float total[64], y[64], z[64]; // hi hi of all k so far, of 128 of k; the cross terms
#pragma unroll
	for (int j = 0; j < 64; j++) total[j] = 0;
	for (unsigned panel = 0; panel < all.count; panel++) {
		unsigned s = panel % STAGES, next = panel + STAGES - 1;
		if (threadIdx.x == 0 && next < all.count) {
			if (panel > 0) used[next % STAGES].wait((panel - 1) / STAGES);
			load(next);
		}
		__syncwarp();
		full[s].wait(panel / STAGES);
		const half16 *left = stage + s * 2 * PANEL + group * 64 * 64, *right = stage + s * 2 * PANEL + PANEL;
		begun();
#pragma unroll
		for (int k = 0; k < 64; k += 16) {
			multiply128(y, operand(left + k), operand(right + k), k > 0 || panel % 2);
			multiply128(z, operand(left + k), operand(right + HALF + k), k > 0 || panel > 0);
			multiply128(z, operand(left + HALF + k), operand(right + k), 1);
		}
		queued();
		done<0>();
		if (lane == 0) used[s].arrive();
		if (panel % 2 == 1 || panel + 1 == all.count)
#pragma unroll
			for (int j = 0; j < 64; j++) total[j] += y[j];
	}

	const float *left = all.aFactors + a * 128, *right = all.bFactors + b * 128;
#pragma unroll
	for (int r = 0; r < 2; r++) {
		int in = group * 64 + threadIdx.x % 128 / 32 * 16 + r * 8 + lane / 4;
		unsigned m = row * 128 + in;
		if (m >= p.m) continue;
		float *c = at(p.c, h, m), by = left[in];
#pragma unroll
		for (int n = 0; n < 16; n++) {
			int j = n * 8 + lane % 4 * 2;
			unsigned to = col * 128 + j;
			float2 f = *(const float2 *)(right + j);
			float x0 = (total[4 * n + 2 * r] + z[4 * n + 2 * r] * SMALL) * f.x * by * p.alpha;
			float x1 = (total[4 * n + 2 * r + 1] + z[4 * n + 2 * r + 1] * SMALL) * f.y * by * p.alpha;
			if (p.bias) {
				if (to < p.n) x0 += p.bias[to];
				if (to + 1 < p.n) x1 += p.bias[to + 1];
			}
			if (p.vec & 2) {
				if (to < p.n) *(float2 *)(c + to) = make_float2(x0, x1);
			} else {
				if (to < p.n) c[to] = x0;
				if (to + 1 < p.n) c[to + 1] = x1;
			}
		}
	}
}

extern "C" __global__ void __launch_bounds__(BLOCK, 1) gemm_warpgroup(const __grid_constant__ GemmHalves p) {
	begin(p.gemm.progress);
	gemmWarpgroup<3>(p);
}
#endif
