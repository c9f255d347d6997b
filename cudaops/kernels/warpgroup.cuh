// Products by warpgroups of four warps (wgmma, sm_90a) and what feeds them: bulk copies that a barrier in shared memory counts.
#pragma once

#include "tensor.cuh"

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define WARPGROUP 1

__device__ __forceinline__ unsigned sharedAddress(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }

// A Barrier turns over each time that as many threads as it was made for have arrived, and the bytes that one of them announced.
struct Barrier {
	unsigned long long word;
	__device__ __forceinline__ void make(int threads) {
		asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(sharedAddress(this)), "r"(threads) : "memory");
	}
	__device__ __forceinline__ void arrive() {
		asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(sharedAddress(this)) : "memory");
	}
	__device__ __forceinline__ void arrive(int bytes) {
		asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(sharedAddress(this)), "r"(bytes) : "memory");
	}
	// wait waits until turn (0 for the first) is over.
	__device__ __forceinline__ void wait(unsigned turn) {
		asm volatile("{\n.reg .pred done;\n"
		             "again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
		             "@!done bra again;\n}" ::"r"(sharedAddress(this)), "r"(turn & 1) : "memory");
	}
};

// copyBulk copies bytes (a multiple of 16, as the addresses are) to shared memory, and tells the barrier.
__device__ __forceinline__ void copyBulk(void *shared, const void *global, int bytes, Barrier &b) {
	asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(sharedAddress(shared)),
	             "l"(global), "r"(bytes), "r"(sharedAddress(&b)) : "memory");
}

// barriersMade lets the copy engine see new barriers, and wroteShared what this thread stored in shared memory. Then __syncthreads.
__device__ __forceinline__ void barriersMade() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
__device__ __forceinline__ void wroteShared() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// begun, queued and done stand before, behind and after products: accumulators are the hardware's from begun to done.
__device__ __forceinline__ void begun() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void queued() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int PENDING> __device__ __forceinline__ void done() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory"); }

// operand describes a matrix in shared memory that is laid out by place, from a row that is a multiple of 8 on.
__device__ __forceinline__ unsigned long long operand(const half16 *p) {
	return (unsigned long long)(sharedAddress(p) >> 4 & 0x3fff) | 1ull << 16 | (unsigned long long)(1024 >> 4) << 32 | 1ull << 62;
}

#define F8(c, i) "+f"(c[i]), "+f"(c[i + 1]), "+f"(c[i + 2]), "+f"(c[i + 3]), "+f"(c[i + 4]), "+f"(c[i + 5]), "+f"(c[i + 6]), "+f"(c[i + 7])
#define F32(c, i) F8(c, i), F8(c, i + 8), F8(c, i + 16), F8(c, i + 24)

// multiply128 and multiply64 make c = a b^T, or add that to it: a is 64 x 16, b 128 or 64 x 16.
__device__ __forceinline__ void multiply128(float c[64], unsigned long long a, unsigned long long b, int add) {
	asm volatile("{ .reg .pred p; setp.ne.b32 p, %66, 0;\n"
	             "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
	             "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, "
	             "%26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, "
	             "%50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, %64, %65, p, 1, 1, 0, 0; }"
	             : F32(c, 0), F32(c, 32)
	             : "l"(a), "l"(b), "r"(add));
}
__device__ __forceinline__ void multiply64(float c[32], unsigned long long a, unsigned long long b, int add) {
	asm volatile("{ .reg .pred p; setp.ne.b32 p, %34, 0;\n"
	             "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
	             "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, "
	             "%26, %27, %28, %29, %30, %31}, %32, %33, p, 1, 1, 0, 0; }"
	             : F32(c, 0)
	             : "l"(a), "l"(b), "r"(add));
}

// multiplyRows is multiply64 with a in registers and b as it lies, 16 x 64.
__device__ __forceinline__ void multiplyRows(float c[32], const unsigned a[4], unsigned long long b, int add) {
	asm volatile("{ .reg .pred p; setp.ne.b32 p, %37, 0;\n"
	             "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
	             "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, "
	             "%26, %27, %28, %29, %30, %31}, {%32, %33, %34, %35}, %36, p, 1, 1, 1; }"
	             : F32(c, 0)
	             : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add));
}
#endif
