// context writes p v for every head. A weight that is exactly 0 takes no part, so that a NaN in a value that it would weigh
// goes nowhere.
//
//   p    [heads, s, t]
//   v    [heads/group, t, d]
//   out  [heads, s, d]
//
// A block of 256 threads makes a tile of BM x COLS in FFMA; a thread makes BM/16 rows of COLS/16 columns, 4 at a time. Slices of 16
// keys pass through shared memory, two at a time. Every 128 keys are summed apart and then added, so that no chain of
// roundings is longer than 128 plus a hundred and twenty-eighth of the keys.
//
// Versions: 1. this.

#include "slice.cuh"

struct Context {
	Progress progress;
	View p, v, out;
	unsigned s, t, d, group;
	int vec; // bit 0: the rows of p are aligned to 16 bytes and t is a multiple of 4; bit 1: v, out and d likewise
	int reserved;
};

template <int BM, int COLS> __device__ __forceinline__ void context(const Context &p) {
	constexpr int RM = BM / 16, PIECES = COLS / 64, APART = 128;
	__shared__ __align__(16) float ps[2][BK][BM + 4];
	__shared__ __align__(16) float vs[2][BK][COLS + 4];
	unsigned h = blockIdx.z, kv = h / p.group, row0 = blockIdx.x * BM, col0 = blockIdx.y * COLS;
	const float *weights = at(p.p, h, 0);
	int tx = threadIdx.x % 16, ty = threadIdx.x / 16;

	Slice<BM> sp;
	Rows<COLS> sv;
	float sum[RM][PIECES * 4] = {}, all[RM][PIECES * 4] = {};
	sp.load(weights, p.p.rs, row0, p.s, 0, p.t, p.vec & 1);
	sv.load(p.v, kv, 0, p.t, col0, p.d, p.vec & 2);
	sp.store(ps[0]);
	sv.store(vs[0]);
	__syncthreads();
	int now = 0;
	for (unsigned k0 = 0; k0 < p.t; k0 += BK) {
		bool more = k0 + BK < p.t;
		if (more) {
			sp.load(weights, p.p.rs, row0, p.s, k0 + BK, p.t, p.vec & 1);
			sv.load(p.v, kv, k0 + BK, p.t, col0, p.d, p.vec & 2);
		}
#pragma unroll
		for (int k = 0; k < BK; k++) {
			float x[RM], y[PIECES * 4];
#pragma unroll
			for (int i = 0; i < RM; i++) x[i] = ps[now][k][ty * RM + i];
#pragma unroll
			for (int j = 0; j < PIECES; j++) *(float4 *)&y[j * 4] = *(float4 *)&vs[now][k][j * 64 + tx * 4];
#pragma unroll
			for (int i = 0; i < RM; i++)
#pragma unroll
				for (int j = 0; j < PIECES * 4; j++)
					if (x[i] != 0) sum[i][j] += x[i] * y[j];
		}
		if (!more || (k0 + BK) % APART == 0)
#pragma unroll
			for (int i = 0; i < RM; i++)
#pragma unroll
				for (int j = 0; j < PIECES * 4; j++) all[i][j] += sum[i][j], sum[i][j] = 0;
		now ^= 1;
		if (more) {
			sp.store(ps[now]);
			sv.store(vs[now]);
		}
		__syncthreads();
	}
#pragma unroll
	for (int i = 0; i < RM; i++) {
		unsigned row = row0 + ty * RM + i;
		if (row >= p.s) continue;
#pragma unroll
		for (int j = 0; j < PIECES; j++) {
			const float *x = &all[i][j * 4];
			store4(at(p.out, h, row), col0 + j * 64 + tx * 4, p.d, p.vec & 2, make_float4(x[0], x[1], x[2], x[3]));
		}
	}
}

#define CONTEXT(BM, COLS)                                                                                              \
	extern "C" __global__ void __launch_bounds__(BLOCK) context_##BM##_##COLS(const __grid_constant__ Context p) {     \
		begin(p.progress);                                                                                             \
		context<BM, COLS>(p);                                                                                          \
	}
CONTEXT(16, 64)
CONTEXT(16, 128)
CONTEXT(64, 64)
CONTEXT(64, 128)
