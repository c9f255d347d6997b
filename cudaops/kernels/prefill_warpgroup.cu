// prefill_warpgroup is prefill_halves for Hopper: the same arithmetic on the same tiles, with products by warpgroups.
//
// A block of two warpgroups makes 128 rows, 64 each. For each tile of 64 keys a warpgroup makes the scores, the weights (in registers, where the
// second products want them), and the weighted values, 64 columns at a time. Tiles come by bulk copies, two at a time, which one thread starts;
// nothing else holds the warpgroups together, so that one works at weights while the other multiplies.
//
// Bound by what stands between the products: in 128 rows of 4096 the tensor cores are busy half of the time (ncu), and the rest goes to weights and
// sums, of which only one warpgroup's hides behind the other's products.
//
// Versions, for H 32, d 128, S 16384 on an H200: 1. sums rescaled at every tile, 14.4 ms, where prefill_halves takes 24.0. 2. rescaled where a
// maximum moved, while products run: 14.1 ms. Left out: queueing both panels of values at once, which spills registers.

#include "prefill_halves.cu"
#include "warpgroup.cuh"

#ifdef WARPGROUP

// A warpgroup's 64 rows. A thread has rows 16 w + l/4 and 8 further, columns 2(l%4) and the next of each 8.
template <int D> struct WarpgroupRows {
	static constexpr int N = D / 8;
	float out[N][4], m[2], l[2];

	// tile takes 64 keys in, as keys of HalvesWarp does.
	template <int ROWS, bool CARE>
	__device__ __forceinline__ bool tile(const half16 *q, const half16 *tile, const float *factors, const float *down, const int seen[2],
	                                     int level) {
		constexpr int STEPS = TILE_KEYS / 16;
		int lane = threadIdx.x % 32;
		bool more = false, sparse = CARE && factors[TILE_KEYS + D] != 0;
		const float raised = LEVEL * level;
		float s[64], x[32]; // hi hi, then hi lo; lo hi
		begun();
#pragma unroll
		for (int k = 0; k < D / 16; k++) {
			const half16 *left = q + k / 4 * ROWS * 64 + k % 4 * 16, *right = tile + k / 4 * 2 * TILE_KEYS * 64 + k % 4 * 16;
			multiply128(s, operand(left), operand(right), k > 0);
			multiply64(x, operand(left + ROWS * D), operand(right), k > 0);
		}
		queued();
		done<0>();

		float keep[2], take[2], max[2] = {NEG_INF, NEG_INF}, from[2], sum[2] = {};
		float by[2] = {down[lane / 4], down[lane / 4 + 8]};
		unsigned wh[STEPS][4], wl[STEPS][4];
#pragma unroll
		for (int n = 0; n < TILE_KEYS / 8; n++) {
			int c = n * 8 + lane % 4 * 2;
			float2 f = *(const float2 *)(factors + c);
#pragma unroll
			for (int j = 0; j < 4; j++) {
				float y = (s[4 * n + j] + (s[32 + 4 * n + j] + x[4 * n + j]) * SMALL) * (j & 1 ? f.y : f.x) * by[j / 2];
				if (CARE && c + (j & 1) >= seen[j / 2]) y = NEG_INF;
				s[4 * n + j] = y;
				max[j / 2] = fmaxf(max[j / 2], y);
			}
		}
#pragma unroll
		for (int r = 0; r < 2; r++) {
			max[r] = Warp<4>::max(max[r]) - 14; // so that weights are up to 2^14
			from[r] = base(max[r]);
			float now = fmaxf(m[r], max[r]);
			keep[r] = power2(m[r] - base(now));
			take[r] = power2(max[r] - base(now) - raised);
			m[r] = now;
		}
#pragma unroll
		for (int n = 0; n < TILE_KEYS / 8; n++) {
#pragma unroll
			for (int j = 0; j < 4; j++) {
				float y = s[4 * n + j] - from[j / 2];
				if (CARE && sparse) {
					y += raised;
					more |= y < LOWEST && y > LOWEST - 126;
					if (y < LOWEST || level > 0 && y >= LOWEST + LEVEL) y = NEG_INF;
				}
				s[4 * n + j] = power2(y);
				sum[j / 2] += s[4 * n + j];
			}
#pragma unroll
			for (int r = 0; r < 2; r++) halve(s[4 * n + 2 * r], s[4 * n + 2 * r + 1], wh[n / 2][n % 2 * 2 + r], wl[n / 2][n % 2 * 2 + r]);
		}
#pragma unroll
		for (int r = 0; r < 2; r++) l[r] = l[r] * keep[r] + sum[r] * take[r];

		const half16 *values = tile + 2 * TILE_KEYS * D;
		bool moved = __any_sync(~0u, keep[0] != 1 || keep[1] != 1);
#pragma unroll
		for (int panel = 0; panel < D / 64; panel++) {
			const half16 *hi = values + panel * 2 * TILE_KEYS * 64, *lo = hi + TILE_LO;
			float y[32], z[32];
			begun();
#pragma unroll
			for (int k = 0; k < STEPS; k++) {
				multiplyRows(z, wh[k], operand(lo + k * 16 * 64), k > 0);
				multiplyRows(y, wh[k], operand(hi + k * 16 * 64), k > 0);
				multiplyRows(z, wl[k], operand(hi + k * 16 * 64), 1);
			}
			queued();
			if (moved) { // while the products run
#pragma unroll
				for (int n = 0; n < 8; n++)
#pragma unroll
					for (int j = 0; j < 4; j++) out[panel * 8 + n][j] *= keep[j / 2];
			}
			done<0>();
#pragma unroll
			for (int n = 0; n < 8; n++) {
				float2 f = *(const float2 *)(factors + TILE_KEYS + panel * 64 + n * 8 + lane % 4 * 2);
#pragma unroll
				for (int j = 0; j < 4; j++)
					out[panel * 8 + n][j] += (y[4 * n + j] + z[4 * n + j] * SMALL) * (j & 1 ? f.y : f.x) * take[j / 2];
			}
		}
		return CARE && sparse && anyOf(more);
	}

	// anyOf is true for every thread of the warpgroup where x is for one.
	__device__ __forceinline__ bool anyOf(bool x) {
		int any;
		asm volatile("{ .reg .pred p, q; setp.ne.b32 p, %1, 0; barrier.cta.red.or.pred q, %2, 128, p; selp.b32 %0, 1, 0, q; }"
		             : "=r"(any) : "r"((int)x), "r"(1 + threadIdx.x / 128) : "memory");
		return any;
	}
};

template <int D> __device__ __forceinline__ void prefillWarpgroup(const PrefillHalves &all) {
	const Prefill &p = all.prefill;
	constexpr int ROWS = 128, TILE = 4 * TILE_KEYS * D, FACTORS = TILE_KEYS + D + 4;
	constexpr int STAGE = TILE / 2 + (FACTORS + 255) / 256 * 256; // floats: tiles begin at multiples of 1024 bytes
	extern __shared__ __align__(16) float shared[];
	__shared__ float down[ROWS];
	__shared__ Barrier full[2], used[2];
	float *begin = shared + (1024 - sharedAddress(shared) % 1024) % 1024 / 4;
	half16 *q = (half16 *)begin;
	float *stage = begin + ROWS * D;
	int lane = threadIdx.x % 32, group = threadIdx.x / 128;
	unsigned h = blockIdx.x, kv = h / p.group, row0 = (gridDim.y - 1 - blockIdx.y) * ROWS;
	unsigned keys = (unsigned)visible(min(row0 + ROWS, p.s) - 1, p.t, p.causal, p.diagonal);
	unsigned count = (keys + TILE_KEYS - 1) / TILE_KEYS;

	if (threadIdx.x == 0) {
#pragma unroll
		for (int i = 0; i < 2; i++) full[i].make(1), used[i].make(BLOCK);
		barriersMade();
	}
	float most = queries<D, ROWS>(p, h, row0, q, down);
	if (!pairsDo<D>(reached(all, kv, count), most, p.scale)) {
		inFull<D, ROWS / 16>(p, h, row0);
		return;
	}
	wroteShared();
	__syncthreads();

	auto load = [&](unsigned tile) {
		i64 at = (i64)kv * all.count + tile;
		float *to = stage + tile % 2 * STAGE;
		Barrier &b = full[tile % 2];
		b.arrive(TILE * 2 + FACTORS * 4);
		copyBulk(to, all.tiles + at * TILE, TILE * 2, b);
		copyBulk(to + TILE / 2, all.factors + at * FACTORS, FACTORS * 4, b);
	};
	if (threadIdx.x == 0 && count > 0) load(0);

	WarpgroupRows<D> w;
#pragma unroll
	for (int n = 0; n < D / 8; n++)
#pragma unroll
		for (int j = 0; j < 4; j++) w.out[n][j] = 0;
	w.m[0] = w.m[1] = NEG_INF;
	w.l[0] = w.l[1] = 0;
	unsigned own = group * 64, first = own + threadIdx.x % 128 / 32 * 16;
	unsigned fewest = (unsigned)visible(row0 + own, p.t, p.causal, p.diagonal);
	unsigned farthest = (unsigned)visible(row0 + own + 63, p.t, p.causal, p.diagonal);
	for (unsigned tile = 0; tile < count; tile++) {
		if (threadIdx.x == 0 && tile + 1 < count) {
			if (tile > 0) used[(tile + 1) % 2].wait((tile - 1) / 2);
			load(tile + 1);
		}
		__syncwarp();
		full[tile % 2].wait(tile / 2);
		const float *now = stage + tile % 2 * STAGE, *factors = now + TILE / 2;
		unsigned key0 = tile * TILE_KEYS;
		if (key0 < farthest) {
			if (key0 + TILE_KEYS <= fewest && factors[TILE_KEYS + D] == 0)
				w.template tile<ROWS, false>(q + own * 64, (const half16 *)now, factors, down + first, nullptr, 0);
			else {
				int seen[2], level = 0;
#pragma unroll
				for (int r = 0; r < 2; r++)
					seen[r] = (int)min(visible(row0 + first + r * 8 + lane / 4, p.t, p.causal, p.diagonal) - key0, (i64)TILE_KEYS);
				while (w.template tile<ROWS, true>(q + own * 64, (const half16 *)now, factors, down + first, seen, level)) level++;
			}
		}
		used[tile % 2].arrive();
	}

	float out[1][D / 8][4], m[1][2], l[1][2];
#pragma unroll
	for (int n = 0; n < D / 8; n++)
#pragma unroll
		for (int j = 0; j < 4; j++) out[0][n][j] = w.out[n][j];
#pragma unroll
	for (int r = 0; r < 2; r++) m[0][r] = w.m[r], l[0][r] = w.l[r];
	HalvesWarp<D, 1>::template store<D / 8>(p, h, row0 + first, 0, out, m, l);
}

extern "C" __global__ void __launch_bounds__(BLOCK, 1) prefill_warpgroup_64(const __grid_constant__ PrefillHalves p) {
	begin(p.prefill.progress);
	prefillWarpgroup<64>(p);
}
extern "C" __global__ void __launch_bounds__(BLOCK, 1) prefill_warpgroup_128(const __grid_constant__ PrefillHalves p) {
	begin(p.prefill.progress);
	prefillWarpgroup<128>(p);
}
#endif
