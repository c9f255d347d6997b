// lse and pool for Hopper, to f32 accuracy on tensor cores: fp16x3 (tensor.cuh), over the panels that halves_rows makes of the keys.
//
// A block of two warpgroups makes 128 rows, 64 each, of 128 keys at a time. A tile's large products and its cross terms have accumulators of their
// own. Queries become pairs in the block itself. Panels come by bulk copies, four on their way; the last warp that is done with one sends for the
// next in its place. The warpgroups take turns at the tensor cores, so that one works at scores while the other multiplies.
//
// Where pairs do not hold the rows of a block, or keys that it sees, the block runs the FFMA code instead.
//
// Versions: 1. this.

#include "lse.cu"
#include "pool.cu"
#include "warpgroup.cuh"

struct CellsHalves {
	Cells cells;
	half16 *panels; // of halves_rows
	float *factors, *holds;
	unsigned blocks, reserved; // of 128 keys, a head
};

#ifdef WARPGROUP

#define CELL_STAGES 4
#define CELL_TURNS 8 // factors of so many tiles, more than are in use

// CellBarriers is what warpgroupCells keeps in shared memory beside pairs: at most 5 KiB.
struct CellBarriers {
	Barrier full[CELL_STAGES];
	unsigned released[CELL_STAGES]; // by how many warps, in all
	float factors[CELL_TURNS][CELL_KEYS], down[CELL_ROWS];
	int bad[BLOCK / 32];
	// make is for one thread, before a barrier.
	__device__ __forceinline__ void make() {
#pragma unroll
		for (int i = 0; i < CELL_STAGES; i++) full[i].make(1), released[i] = 0;
		barriersMade();
	}
};

// aligned is shared memory from a multiple of 1024 bytes on.
__device__ __forceinline__ float *aligned(float *shared) { return shared + (1024 - sharedAddress(shared) % 1024) % 1024 / 4; }

// pairs writes the block's queries as pairs: hi, then lo, by place each, and their factors with the scale. It says whether pairs hold these, and
// the keys from up to to; every thread has then passed a barrier.
template <int PANELS>
__device__ __forceinline__ bool pairs(const CellsHalves &all, CellBarriers &b, half16 *q, unsigned tile, unsigned h, unsigned from, unsigned to) {
	constexpr int D = PANELS * 64, LANES = D / 4, AT = BLOCK / LANES;
	const Cells &p = all.cells;
	bool bad = false;
	const float *holds = all.holds + (i64)(h / p.group) * all.blocks * 8;
	for (unsigned i = from / 16 + threadIdx.x; i < (to + 15) / 16; i += BLOCK) bad |= holds[i] == 0;
#pragma unroll 4
	for (int slot = threadIdx.x / LANES; slot < CELL_ROWS; slot += AT) {
		u64 at128 = (u64)tile * CELL_ROWS + slot;
		i64 row, end;
		groupRows(at128 / p.rowGroup, p.s, p.rowPools, p.rowParts, p.rowGroup, row, end);
		row += at128 % p.rowGroup;
		int c = threadIdx.x % LANES * 4;
		float4 x = make_float4(0, 0, 0, 0);
		if (row < end) x = load4(at(p.q, h, row), c, p.d, p.vec);
		float y[4] = {magnitude(x.x), magnitude(x.y), magnitude(x.z), magnitude(x.w)}, most = 0, least = -NEG_INF;
#pragma unroll
		for (int j = 0; j < 4; j++) {
			most = fmaxf(most, y[j]);
			if (y[j] > 0) least = fminf(least, y[j]);
		}
		most = Warp<LANES>::max(most);
		bad |= most > 0 && !(least >= most * 9.313225746e-10f && most >= 7.888609052e-31f && most < 1.208925820e24f); // 2^-30, 2^-100, 2^80
		Scaling s(most);
		uint2 hi, lo;
		halve(x.x * s.up, x.y * s.up, hi.x, lo.x);
		halve(x.z * s.up, x.w * s.up, hi.y, lo.y);
		half16 *to = q + place(slot, c / 8, CELL_ROWS) + c % 8;
		*(uint2 *)to = hi;
		*(uint2 *)(to + CELL_ROWS * D) = lo;
		if (c == 0) b.down[slot] = s.down * p.scale;
	}
	bad = __any_sync(~0u, bad);
	if (threadIdx.x % 32 == 0) b.bad[threadIdx.x / 32] = bad;
	wroteShared();
	__syncthreads();
#pragma unroll
	for (int i = 0; i < BLOCK / 32; i++) bad |= b.bad[i];
	return !bad;
}

// turn waits for this warpgroup's, pass gives it to the other.
__device__ __forceinline__ void turn(int group) { asm volatile("bar.sync %0, 256;" ::"r"(1 + group) : "memory"); }
__device__ __forceinline__ void pass(int group) { asm volatile("bar.arrive %0, 256;" ::"r"(2 - group) : "memory"); }

// warpgroupCells is plainCells on tensor cores. q: the block's queries as pairs; stages: CELL_STAGES panels.
template <int PANELS, class Sink>
__device__ __forceinline__ void warpgroupCells(const CellsHalves &all, CellBarriers &b, const half16 *q, half16 *stages, unsigned h, unsigned from,
                                               unsigned to, Sink &sink) {
	constexpr int D = PANELS * 64, PANEL = 256 * 64; // fp16 numbers
	const Cells &p = all.cells;
	int lane = threadIdx.x % 32, group = threadIdx.x / 128, first = threadIdx.x / 32 * 16 + lane / 4;
	unsigned tiles = (to - from + CELL_KEYS - 1) / CELL_KEYS, count = tiles * PANELS;
	i64 block = (i64)(h / p.group) * all.blocks + from / CELL_KEYS;
	auto load = [&](unsigned panel) {
		Barrier &full = b.full[panel % CELL_STAGES];
		unsigned tile = panel / PANELS;
		full.arrive(2 * PANEL + (panel % PANELS == 0 ? 4 * CELL_KEYS : 0));
		copyBulk(stages + panel % CELL_STAGES * PANEL, all.panels + (block * PANELS + panel) * PANEL, 2 * PANEL, full);
		if (panel % PANELS == 0) copyBulk(b.factors[tile % CELL_TURNS], all.factors + (block + tile) * CELL_KEYS, 4 * CELL_KEYS, full);
	};
	auto release = [&](unsigned panel) {
		__syncwarp();
		if (lane > 0) return;
		__threadfence_block();
		bool last = atomicAdd(&b.released[panel % CELL_STAGES], 1) % (BLOCK / 32) == BLOCK / 32 - 1;
		if (last && panel + CELL_STAGES < count) load(panel + CELL_STAGES);
	};
	if (threadIdx.x == 0)
		for (unsigned i = 0; i < CELL_STAGES && i < count; i++) load(i);
	if (group == 1) pass(1);
	float by[2] = {b.down[first], b.down[first + 8]};
	// A descriptor counts in 16 bytes: 8 fp16 numbers.
	const u64 rows = operand(q + group * 64 * 64), keys = operand(stages);
	for (unsigned tile = 0; tile < tiles; tile++) {
		float y[64], z[64]; // hi hi; hi lo and lo hi
		__syncwarp();
		turn(group);
#pragma unroll
		for (int i = 0; i < PANELS; i++) {
			unsigned panel = tile * PANELS + i;
			b.full[panel % CELL_STAGES].wait(panel / CELL_STAGES);
			begun();
			const u64 left = rows + i * CELL_ROWS * 8, right = keys + panel % CELL_STAGES * (PANEL / 8);
#pragma unroll
			for (int k = 0; k < 64; k += 16) {
				multiply128(y, left + k / 8, right + k / 8, i > 0 || k > 0);
				multiply128(z, left + k / 8, right + CELL_KEYS * 8 + k / 8, i > 0 || k > 0);
				multiply128(z, left + CELL_ROWS * D / 8 + k / 8, right + k / 8, 1);
			}
			queued();
		}
		if (group == 0 || tile + 1 < tiles) pass(group);
		if (PANELS > 1) {
			done<1>();
			release(tile * PANELS);
			__syncwarp();
		}
		done<0>();
		release(tile * PANELS + PANELS - 1);
		__syncwarp();
		float cell[64];
		const float *factors = b.factors[tile % CELL_TURNS] + lane % 4 * 2;
#pragma unroll
		for (int n = 0; n < 16; n++) {
			float2 f = *(const float2 *)(factors + n * 8);
#pragma unroll
			for (int j = 0; j < 4; j++) cell[4 * n + j] = (y[4 * n + j] + z[4 * n + j] * SMALL) * (j & 1 ? f.y : f.x) * by[j / 2];
		}
		sink.tile(cell, from + tile * CELL_KEYS);
	}
}

__device__ __noinline__ void lseInFull(const Cells &p, CellSlices &shared, unsigned tile, unsigned h) { lseBlock(p, shared, tile, h); }
__device__ __noinline__ void poolInFull(const Cells &p, CellSlices &shared, unsigned tile, unsigned h) { poolBlock(p, shared, tile, h); }

template <int PANELS> __device__ __forceinline__ void lseWarpgroup(const CellsHalves &all) {
	extern __shared__ __align__(16) float shared[];
	unsigned tile = gridDim.x - 1 - blockIdx.x, h = blockIdx.y, from, to;
	lseKeys(all.cells, tile, from, to);
	half16 *q = (half16 *)aligned(shared), *stages = q + 2 * CELL_ROWS * PANELS * 64;
	CellBarriers &b = *(CellBarriers *)(stages + CELL_STAGES * 256 * 64);
	if (threadIdx.x == 0) b.make();
	if (from < to && !pairs<PANELS>(all, b, q, tile, h, from, to)) {
		lseInFull(all.cells, *(CellSlices *)shared, tile, h);
		return;
	}
	Summed sum(all.cells, tile);
	if (from < to) warpgroupCells<PANELS>(all, b, q, stages, h, from, to, sum);
	sum.end(h, all.cells.out, all.cells.lseStride);
}

template <int PANELS> __device__ __forceinline__ void poolWarpgroup(const CellsHalves &all) {
	extern __shared__ __align__(16) float shared[];
	unsigned tile = gridDim.x - 1 - blockIdx.x, h = blockIdx.y, from, to;
	poolKeys(all.cells, tile, from, to);
	if (from >= to) return;
	half16 *q = (half16 *)aligned(shared), *stages = q + 2 * CELL_ROWS * PANELS * 64;
	CellBarriers &b = *(CellBarriers *)(stages + CELL_STAGES * 256 * 64);
	if (threadIdx.x == 0) b.make();
	if (!pairs<PANELS>(all, b, q, tile, h, from, to)) {
		poolInFull(all.cells, *(CellSlices *)shared, tile, h);
		return;
	}
	Pooled pooled(all.cells, tile, h);
	warpgroupCells<PANELS>(all, b, q, stages, h, from, to, pooled);
	pooled.finish();
}

#define CELLS_WARPGROUP(NAME, F, PANELS)                                                                                        \
	extern "C" __global__ void __launch_bounds__(BLOCK, 1) NAME(const __grid_constant__ CellsHalves p) {                         \
		begin(p.cells.progress);                                                                                                \
		F<PANELS>(p);                                                                                                           \
	}
CELLS_WARPGROUP(lse_warpgroup_1, lseWarpgroup, 1)
CELLS_WARPGROUP(lse_warpgroup_2, lseWarpgroup, 2)
CELLS_WARPGROUP(pool_warpgroup_1, poolWarpgroup, 1)
CELLS_WARPGROUP(pool_warpgroup_2, poolWarpgroup, 2)
#endif
