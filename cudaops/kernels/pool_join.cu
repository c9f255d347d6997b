// pool_join makes results of the parts that pool leaves: lanes threads add up, in f64, the parts of one. What is made of the keys before these
// lies in the result already, where a pool of keys began with them.
//
// Versions: 1. this.

#include "pool.cu"

// visibleCells counts what rows and columns from up to to have in sight.
__device__ __forceinline__ double visibleCells(const PoolJoin &p, i64 row0, i64 row1, i64 col0, i64 col1) {
	if (!p.causal) return (double)(row1 - row0) * (col1 - col0);
	i64 some = max(row0, min(row1, col0 - p.diagonal)), all = max(some, min(row1, col1 - p.diagonal - 1)); // rows that see the first; the last
	double n = (double)(all - some), from = (double)(some + p.diagonal + 1 - col0), to = (double)(all + p.diagonal - col0);
	return n * (from + to) / 2 + (double)(row1 - all) * (col1 - col0);
}

extern "C" __global__ void __launch_bounds__(BLOCK) pool_join(const __grid_constant__ PoolJoin p) {
	begin(p.progress);
	__shared__ double shared[BLOCK];
	u64 result = ((u64)blockIdx.x * BLOCK + threadIdx.x) / p.lanes;
	unsigned lane = threadIdx.x & (p.lanes - 1);
	bool there = result < p.cells;
	u64 j = p.pool0 + result % p.pools, row = result / p.pools, i = row % p.rowPools, h = row / p.rowPools;
	i64 col0 = edge(j, p.t, p.colPools), col1 = edge(j + 1, p.t, p.colPools);
	u64 from = col0, to = col1; // units, or keys
	bool begun = false, ended = true;
	if (p.units) {
		from = max(j * p.colParts, (u64)p.unit0);
		to = min((j + 1) * p.colParts, (u64)p.unit0 + p.units);
		begun = j * p.colParts < from;
		ended = (j + 1) * p.colParts == to;
	}
	double v = p.extreme ? NEG_INF : 0;
	float *out = there ? at(p.out, h, i) + j : nullptr;
	if (there) {
		if (begun && lane == 0) v = *out;
		u64 n = (to - from) * p.rowParts;
		for (u64 part = lane; part < n; part += p.lanes) {
			u64 group = i * p.rowParts + part / (to - from), column = from + part % (to - from);
			i64 row0, row1;
			groupRows(group, p.s, p.rowPools, p.rowParts, p.rowGroup, row0, row1);
			if (row0 >= row1) continue;
			if (p.causal) {
				i64 key = p.units ? unitStart(column, p.t, p.colPools, p.colParts) : column;
				if (key >= visible(row1 - 1, p.t, p.causal, p.diagonal)) continue;
			}
			float x = p.parts[((i64)h * p.pieces + group) * p.columns + (column - (p.units ? p.unit0 : p.first))];
			v = p.extreme ? extremeOf((float)v, x) : v + x;
		}
	}
	shared[threadIdx.x] = v;
	for (unsigned d = p.lanes / 2; d > 0; d /= 2) {
		__syncthreads();
		if (lane >= d) continue;
		double x = shared[threadIdx.x + d];
		v = p.extreme ? extremeOf((float)v, (float)x) : v + x;
		shared[threadIdx.x] = v;
	}
	if (!there || lane > 0) return;
	if (ended) {
		double count = visibleCells(p, edge(i, p.s, p.rowPools), edge(i + 1, p.s, p.rowPools), col0, col1);
		if (p.extreme < 0) v = -v;
		if (p.extreme && p.probabilities) v = power2((float)v * LOG2_E);
		if (p.mean) v /= count;
		if (count == 0) v = 0;
	}
	*out = (float)v;
}
