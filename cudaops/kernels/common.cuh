// What the kernels share. Every kernel takes one struct by value; cudaops/cuda/params.go declares the same structs in Go,
// and a test compares them field by field.
#pragma once

typedef long long i64;

// Progress begins every kernel's parameters: the number of the op that launched it, and a word of host memory that shall
// hold the number of the last op whose kernel began. The host reads it when the GPU has failed.
struct Progress {
	unsigned *word;
	unsigned op, reserved;
};

// begin stands first in every kernel. On Hopper and later a kernel's blocks come while the last of the kernel before it still run, and wait
// here until that has ended and what it wrote can be read. Then it stores the number: one store by one thread, which nothing waits for.
__device__ __forceinline__ void begin(const Progress &p) {
#if __CUDA_ARCH__ >= 900
	asm volatile("griddepcontrol.wait;" ::: "memory");
	asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
	if ((blockIdx.x | blockIdx.y | blockIdx.z | threadIdx.x) == 0) *(volatile unsigned *)p.word = p.op;
}

// A view of [heads, rows, cols]: element (h, s, i) is p[h*hs + s*rs + i].
struct View {
	float *p;
	i64 hs, rs;
};

__device__ __forceinline__ float *at(const View &v, i64 h, i64 s) { return v.p + h * v.hs + s * v.rs; }

#define NEG_INF __int_as_float(0xff800000)

// Chunk<V> is V consecutive floats in registers: V is 4 where every address is a multiple of 16 bytes, else 1.
template <int V> struct Chunk;
template <> struct Chunk<4> {
	float4 v;
	__device__ __forceinline__ void load(const float *p) { v = *(const float4 *)p; }
	__device__ __forceinline__ void store(float *p) const { *(float4 *)p = v; }
	__device__ __forceinline__ void add(const Chunk &o) { v.x += o.v.x, v.y += o.v.y, v.z += o.v.z, v.w += o.v.w; }
};
template <> struct Chunk<1> {
	float v;
	__device__ __forceinline__ void load(const float *p) { v = *p; }
	__device__ __forceinline__ void store(float *p) const { *p = v; }
	__device__ __forceinline__ void add(const Chunk &o) { v += o.v; }
};

// Warp joins the values of the threads whose lanes differ in the bits below N.
template <int N> struct Warp {
	static __device__ __forceinline__ float max(float x) {
#pragma unroll
		for (int d = N / 2; d > 0; d /= 2) x = fmaxf(x, __shfl_xor_sync(~0u, x, d));
		return x;
	}
	static __device__ __forceinline__ float sum(float x) {
#pragma unroll
		for (int d = N / 2; d > 0; d /= 2) x += __shfl_xor_sync(~0u, x, d);
		return x;
	}
};

// base is what scores are taken relative to, for a maximum m: where every score is -Inf, or there is none, not
// -Inf itself, which would make NaN.
__device__ __forceinline__ float base(float m) { return m == NEG_INF ? 0 : m; }

// load4 reads 4 floats of a row at column c, in one access where the row is aligned (vec), with zeros past cols.
__device__ __forceinline__ float4 load4(const float *row, int c, int cols, bool vec) {
	if (vec) return c < cols ? *(const float4 *)(row + c) : make_float4(0, 0, 0, 0);
	return make_float4(c < cols ? row[c] : 0, c + 1 < cols ? row[c + 1] : 0, c + 2 < cols ? row[c + 2] : 0,
	                   c + 3 < cols ? row[c + 3] : 0);
}

// store4 writes those of 4 floats that lie before cols.
__device__ __forceinline__ void store4(float *row, int c, int cols, bool vec, float4 x) {
	if (vec) {
		if (c < cols) *(float4 *)(row + c) = x;
		return;
	}
	if (c < cols) row[c] = x.x;
	if (c + 1 < cols) row[c + 1] = x.y;
	if (c + 2 < cols) row[c + 2] = x.z;
	if (c + 3 < cols) row[c + 3] = x.w;
}

// An elementwise kernel gives each thread UNROLL chunks, all loaded before the first is stored. Blocks of 256 threads
// hold UNROLL * 256/lanes rows, where lanes (a power of two) covers a row; a row of more than 256 chunks is cut into
// tiles of UNROLL*256 chunks instead.
#define UNROLL 4
#define BLOCK 256

struct Extent {
	unsigned heads, rows, cols;  // cols counts chunks
	unsigned lanes;              // threads to a row: 1, 2, 4 ... 256
	unsigned tiles;              // tiles to a row; 0: rows share a block
	unsigned headsInner;         // walk heads before rows: the order in which memory lies in a rows-major tensor
};

// locate gives the head, row and chunk of step u of this thread in a block of the extent; false: none.
__device__ __forceinline__ bool locate(const Extent &e, unsigned block, int u, unsigned &h, unsigned &s, unsigned &c) {
	unsigned row;
	if (e.tiles == 0) {
		unsigned per = BLOCK / e.lanes;
		row = (block * UNROLL + u) * per + threadIdx.x / e.lanes;
		c = threadIdx.x & (e.lanes - 1);
	} else {
		row = block / e.tiles;
		c = ((block - row * e.tiles) * UNROLL + u) * BLOCK + threadIdx.x;
	}
	if (e.headsInner) {
		s = row / e.heads;
		h = row - s * e.heads;
	} else {
		h = row / e.rows;
		s = row - h * e.rows;
	}
	return c < e.cols && h < e.heads && s < e.rows;
}

// visible is the number of columns that a row sees under a mask (cudaops.Mask).
__device__ __forceinline__ i64 visible(i64 row, i64 cols, int causal, i64 diagonal) {
	if (!causal) return cols;
	i64 n = row + diagonal + 1;
	return n < 0 ? 0 : n < cols ? n : cols;
}
