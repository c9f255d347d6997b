// halves_rows writes the rows of a matrix as tensor cores take them (tensor.cuh), for products over all of a row: blocks of 128 rows, each
// in panels of 64 columns, each of these 256 rows of 64, hi and then lo, by place. A row has one scale. holds says of every 16 rows whether
// their pairs are as accurate as f32: nothing that is not finite, nothing but 0 below 2^-30 of its row's largest.
//
//   m  [heads, rows, cols]
//
// A block of threads takes 16 rows, a warp one at a time and twice: first for its largest. Bound by memory: the second reading comes from the
// caches.
//
// Versions: 1. 128 rows a block of threads: too few of them, 0.77 ms for 4096 x 4096 and 12288 x 4096 on an H200. 2. this.

#include "tensor.cuh"

struct HalvesRows {
	Progress progress;
	View m;
	half16 *panels; // [heads, blocks, count, 256 * 64]
	float *factors; // [heads, blocks, 128]
	float *holds;   // [heads, blocks, 8]: 1 or 0
	unsigned rows, cols, blocks, count;
	int vec; // rows are aligned to 16 bytes and cols is a multiple of 4
	int reserved;
};

#ifdef TENSOR
extern "C" __global__ void __launch_bounds__(BLOCK) halves_rows(const __grid_constant__ HalvesRows p) {
	begin(p.progress);
	__shared__ float bads[BLOCK / 32];
	int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
	i64 block = (i64)blockIdx.y * p.blocks + blockIdx.x / 8;
	half16 *to = p.panels + block * p.count * (256 * 64);
	float bad = 0;
	for (int i = warp; i < 16; i += BLOCK / 32) {
		int r = blockIdx.x % 8 * 16 + i;
		unsigned row = blockIdx.x * 16 + i;
		const float *from = at(p.m, blockIdx.y, row);
		float most = 0, least = -NEG_INF;
		if (row < p.rows)
			for (unsigned c = lane * 4; c < p.cols; c += 128) {
				float4 x = load4(from, c, p.cols, p.vec);
				float y[4] = {magnitude(x.x), magnitude(x.y), magnitude(x.z), magnitude(x.w)};
#pragma unroll
				for (int j = 0; j < 4; j++) {
					most = fmaxf(most, y[j]);
					if (y[j] > 0) least = fminf(least, y[j]);
				}
			}
		most = Warp<32>::max(most);
		Scaling s(most);
		if (most > 0 && !(least >= most * 9.313225746e-10f && most >= 7.888609052e-31f && most < 1.208925820e24f)) bad = 1; // 2^-30, 2^-100, 2^80
		if (lane == 0) p.factors[block * 128 + r] = s.down;
		for (unsigned c = lane * 4; c < p.count * 64; c += 128) {
			float4 x = make_float4(0, 0, 0, 0);
			if (row < p.rows) x = load4(from, c, p.cols, p.vec);
			uint2 hi, lo;
			halve(x.x * s.up, x.y * s.up, hi.x, lo.x);
			halve(x.z * s.up, x.w * s.up, hi.y, lo.y);
			half16 *at = to + (i64)(c / 64) * (256 * 64) + place(r, c % 64 / 8, 256) + c % 8;
			*(uint2 *)at = hi;
			*(uint2 *)(at + 128 * 64) = lo;
		}
	}
	bad = Warp<32>::max(bad);
	if (lane == 0) bads[warp] = bad;
	__syncthreads();
	if (threadIdx.x > 0) return;
	for (int i = 0; i < BLOCK / 32; i++) bad = fmaxf(bad, bads[i]);
	p.holds[block * 8 + blockIdx.x % 8] = bad == 0;
}
#endif
