// Products of f32 matrices on tensor cores, to f32 accuracy: fp16x3 (Ootomo and Yokota, arXiv 2203.03341).
//
// Numbers that share a scale (a row of queries or keys, a column of values) are brought, by a power of two, to where the largest is in
// [2^14, 2^15), and each is written as two of fp16, x = hi + 2^-11 lo: to 2^-23 of itself, and to 2^-50 of the largest.
// x y is then hi hi + 2^-11 (hi lo + lo hi), which leaves out at most 2^-22 of it. Tensor cores multiply exactly and truncate
// where they add: so no accumulator takes more than a tile, the small products have one of their own, and tiles are added by
// ordinary arithmetic. docs/tolerances.md holds the account.
#pragma once

#include "common.cuh"

typedef unsigned short half16; // the bits of an fp16 number

#if __CUDA_ARCH__ >= 800 || defined(EMULATED)
#define TENSOR 1
#endif

#define TILE_KEYS 64                   // keys of a tile
#define TILE_LO (TILE_KEYS * 64)       // from an element's hi to its lo
#define SMALL __int_as_float(0x3a000000) // 2^-11, the unit of lo

// magnitude is |x|, and +Inf for NaN.
__device__ __forceinline__ float magnitude(float x) {
	x = fabsf(x);
	return x <= 3.402823466e38f ? x : -NEG_INF;
}

// Scaling is the power of two for numbers of which the largest is most, and its inverse. Numbers below 2^-100 are not brought up
// all the way.
struct Scaling {
	float up, down;
	__device__ __forceinline__ explicit Scaling(float most) {
		int e = __float_as_int(most) >> 23;
		e = e < 27 ? 27 : e > 254 ? 254 : e;
		up = __int_as_float((268 - e) << 23);
		down = __int_as_float((e - 14) << 23);
	}
};

#ifndef EMULATED
// power2 is 2^x to 2 ULP; denormal results are 0.
__device__ __forceinline__ float power2(float x) {
	float y;
	asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
	return y;
}
#endif

#ifdef TENSOR
#ifndef EMULATED

// pack rounds two numbers to fp16: x in the low half.
__device__ __forceinline__ unsigned pack(float x, float y) {
	unsigned r;
	asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(y), "f"(x));
	return r;
}

__device__ __forceinline__ void unpack(unsigned h, float &x, float &y) {
	asm("{ .reg .f16 a, b; mov.b32 {a, b}, %2; cvt.f32.f16 %0, a; cvt.f32.f16 %1, b; }" : "=f"(x), "=f"(y) : "r"(h));
}

// loadFragments reads four matrices of 8 x 8 fp16 from shared memory; lane 8i+j names the address of row j of matrix i. Lane l gets, of
// each, elements 2(l%4) and the next of row l/4.
__device__ __forceinline__ void loadFragments(unsigned r[4], const half16 *row) {
	asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
	             : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
	             : "r"((unsigned)__cvta_generic_to_shared(row)));
}

// loadTransposed is loadFragments of the transposed matrices.
__device__ __forceinline__ void loadTransposed(unsigned r[4], const half16 *row) {
	asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
	             : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
	             : "r"((unsigned)__cvta_generic_to_shared(row)));
}

// multiply adds a b to c: a is 16 x 16, b 16 x 8 (PTX ISA, mma.m16n8k16, for what lies in which lane).
__device__ __forceinline__ void multiply(float c[4], const unsigned a[4], unsigned b0, unsigned b1) {
	asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
	    : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
	    : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// multiply32 does so with numbers of TF32: a is 16 x 8, b 8 x 8 (mma.m16n8k8).
__device__ __forceinline__ void multiply32(float c[4], const unsigned a[4], unsigned b0, unsigned b1) {
	asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
	    : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
	    : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

#endif

// split writes a number as two of TF32, x = hi + lo, to 2^-23 of itself, whatever its size from 2^-100 on: hi rounds to the 11 bits that TF32 has, and of
// the up to 12 that remain tensor cores take the first 11.
__device__ __forceinline__ void split(float x, unsigned &hi, unsigned &lo) {
	hi = ((unsigned)__float_as_int(x) + 0x1000) & 0xffffe000;
	lo = (unsigned)__float_as_int(x - __int_as_float(hi));
}

// halve writes two scaled numbers as pairs of fp16.
__device__ __forceinline__ void halve(float x, float y, unsigned &hi, unsigned &lo) {
	float a, b;
	hi = pack(x, y);
	unpack(hi, a, b);
	lo = pack((x - a) * 2048, (y - b) * 2048);
}

// place is where element (row, 8 chunk) of a matrix of fp16 lies whose columns are cut into panels of 64, one behind another: rows of 128
// bytes, whose pieces of 16 are swapped so that a column of pieces touches every bank of shared memory.
__device__ __forceinline__ int place(int row, int chunk, int rows) {
	return (chunk / 8 * rows + row) * 64 + ((chunk ^ row) & 7) * 8;
}
#endif
