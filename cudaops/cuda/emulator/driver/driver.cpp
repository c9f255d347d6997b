// A pretended libcuda.so.1 that runs the kernels on the processor, for tests on machines without a GPU. package emulator
// compiles it together with the kernels' sources, which it includes as kernels.h.
//
// It runs one block after the other and the threads of a block as fibers, each until it waits for others. So results are
// those of the kernels' own arithmetic, but no race shows, nor any speed. Each allocation ends at a page that nobody may
// touch, and holds NaN at first, as shared memory does: an access past the end, or of what was never written, shows.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <map>
#include <sys/mman.h>

// ---- what CUDA C++ knows without includes

using std::isinf;
struct Dim3 {
	unsigned x, y, z;
};
static Dim3 threadIdx, blockIdx, blockDim, gridDim;
struct alignas(16) float4 {
	float x, y, z, w;
};
struct alignas(8) float2 {
	float x, y;
};
struct alignas(8) uint2 {
	unsigned x, y;
};
static inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
static inline float2 make_float2(float x, float y) { return {x, y}; }
static inline float __int_as_float(unsigned x) {
	float f;
	memcpy(&f, &x, 4);
	return f;
}
static inline int __float_as_int(float f) {
	int x;
	memcpy(&x, &f, 4);
	return x;
}
static inline float __fmul_rn(float a, float b) {
	volatile float c = a * b; // not fused with a sum
	return c;
}
static inline void sincospi(double x, double *s, double *c) {
	double r = x - 2 * nearbyint(x / 2);
	sincos(r * M_PI, s, c);
}
template <class T> static inline T min(T a, T b) { return a < b ? a : b; }
template <class T> static inline T max(T a, T b) { return a > b ? a : b; }
template <class T> static inline T __ldcg(const T *p) { return *p; }
static inline unsigned atomicAdd(unsigned *p, unsigned x) {
	unsigned old = *p;
	*p += x;
	return old;
}
static inline void __threadfence() {}
#define __device__
#define __forceinline__ inline
#define __global__ __attribute__((visibility("default")))
#define __shared__ static
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))

const int MOST_THREADS = 1024, MOST_SHARED = 227 << 10, STACK = 64 << 10;
alignas(16) static float dynamicShared[MOST_SHARED / 4];

// ---- fibers

extern "C" void switchStack(void **from, void *to);
asm(R"(
.text
switchStack:
	pushq %rbp; pushq %rbx; pushq %r12; pushq %r13; pushq %r14; pushq %r15
	movq %rsp, (%rdi)
	movq %rsi, %rsp
	popq %r15; popq %r14; popq %r13; popq %r12; popq %rbx; popq %rbp
	ret
)");

enum State { RUNS, WAITS, ENDED };
struct Fiber {
	void *stack;
	State state;
	unsigned shuffles;
};
static Fiber fibers[MOST_THREADS];
static void *scheduler;
static int current;
static char *stacks;
static float exchanged[MOST_THREADS][2]; // by the parity of a thread's shuffles
typedef void (*Kernel)(const void *params);
static Kernel kernel;
static const void *params;

// pause lets the other threads run until each has paused, waits or has ended.
static void pause() {
	int me = current;
	switchStack(&fibers[me].stack, scheduler);
	threadIdx.x = me;
}
static void __syncthreads() {
	fibers[current].state = WAITS;
	pause();
}
static void __syncwarp() { pause(); }
static float __shfl_xor_sync(unsigned, float x, int d) {
	int me = current, parity = fibers[me].shuffles++ & 1;
	exchanged[me][parity] = x;
	pause();
	return exchanged[me ^ d][parity];
}

static float __shfl_sync(unsigned, float x, int from) {
	int me = current, parity = fibers[me].shuffles++ & 1;
	exchanged[me][parity] = x;
	pause();
	return exchanged[me / 32 * 32 + from % 32][parity];
}

static void runThread() {
	kernel(params);
	fibers[current].state = ENDED;
	switchStack(&fibers[current].stack, scheduler);
}

static void runBlock(int threads) {
	for (int i = 0; i < threads; i++) {
		void **top = (void **)(stacks + (size_t)STACK * (i + 1));
		*--top = 0; // the stack is 16 bytes aligned where runThread begins
		*--top = (void *)runThread;
		for (int r = 0; r < 6; r++) *--top = 0;
		fibers[i] = {top, RUNS, 0};
	}
	for (;;) {
		int alive = 0, ran = 0;
		for (current = 0; current < threads; current++) {
			if (fibers[current].state == ENDED) continue;
			alive++;
			if (fibers[current].state == WAITS) continue;
			ran++;
			threadIdx.x = current;
			switchStack(&scheduler, fibers[current].stack);
		}
		if (!alive) return;
		if (ran) continue;
		for (int i = 0; i < threads; i++) // every living thread waits
			if (fibers[i].state == WAITS) fibers[i].state = RUNS;
	}
}

#define EMULATED
typedef unsigned short half16;
#include "tensor.h"
#include "kernels.h"

// ---- the driver's interface. Work is done at once, so streams and events are empty. Calls come from one thread at a time.

#define API extern "C" __attribute__((visibility("default"))) int
enum { INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_FOUND = 500 };
static void *const handle = (void *)1;

static int number(const char *name, int otherwise) {
	const char *v = getenv(name);
	return v ? atoi(v) : otherwise;
}

API cuInit(unsigned) { return 0; }
API cuDriverGetVersion(int *v) { return *v = 12090, 0; }
API cuDeviceGetCount(int *n) { return *n = 1, 0; }
API cuDeviceGet(int *d, int ordinal) { return *d = ordinal, 0; }
API cuDeviceGetName(char *s, int n, int) { return snprintf(s, n, "Emulator"), 0; }
API cuDeviceTotalMem_v2(size_t *n, int) { return *n = 16ull << 30, 0; }
API cuDeviceGetAttribute(int *v, int a, int) {
	switch (a) {
	case 75: return *v = 8, 0;                                        // compute capability, major
	case 76: return *v = 0, 0;                                        // minor
	case 16: return *v = number("EMULATED_SMS", 132), 0;              // multiprocessors
	case 97: return *v = number("EMULATED_SHARED", MOST_SHARED), 0;   // shared memory a block
	case 81: return *v = number("EMULATED_SHARED", MOST_SHARED) + 1024, 0; // and a multiprocessor
	case 115: return *v = 1, 0;                                       // memory pools
	case 13: return *v = 1980000, 0;                                  // clock, kHz
	case 38: return *v = 60 << 20, 0;                                 // L2
	}
	return *v = 0, 0;
}
API cuDevicePrimaryCtxRetain(void **c, int) { return *c = handle, 0; }
API cuDevicePrimaryCtxRelease_v2(int) { return 0; }
API cuCtxSetCurrent(void *) { return 0; }
API cuDeviceGetDefaultMemPool(void **p, int) { return *p = handle, 0; }
API cuMemPoolSetAttribute(void *, int, void *) { return 0; }
API cuMemPoolTrimTo(void *, size_t) { return 0; }
API cuStreamCreate(void **s, unsigned) { return *s = handle, 0; }
API cuStreamDestroy_v2(void *) { return 0; }
API cuStreamSynchronize(void *) { return 0; }
API cuEventCreate(void **e, unsigned) { return *e = handle, 0; }
API cuEventRecord(void *, void *) { return 0; }
API cuEventSynchronize(void *) { return 0; }
API cuEventDestroy_v2(void *) { return 0; }
API cuEventElapsedTime(float *ms, void *, void *) { return *ms = 1, 0; }
API cuModuleLoadData(void **m, const void *) { return *m = handle, 0; }
API cuModuleUnload(void *) { return 0; }
API cuModuleGetFunction(void **f, void *, const char *name) {
	static void *self;
	Dl_info info;
	if (!self && dladdr((void *)runBlock, &info)) self = dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
	return (*f = dlsym(self, name)) ? 0 : NOT_FOUND;
}
API cuFuncSetAttribute(void *, int, int) { return 0; }
API cuGetErrorName(int, const char **s) { return *s = "CUDA_ERROR_EMULATED", 0; }
API cuGetErrorString(int, const char **s) { return *s = "emulated", 0; }

API cuMemHostAlloc(void **p, size_t n, unsigned) { return (*p = malloc(n)) ? 0 : OUT_OF_MEMORY; }
API cuMemFreeHost(void *p) { return free(p), 0; }
API cuMemHostGetDevicePointer_v2(void **d, void *p, unsigned) { return *d = p, 0; }

struct Pages {
	char *pages;
	size_t length;
};
static std::map<uint64_t, Pages> allocations;

API cuMemAllocAsync(uint64_t *p, size_t n, void *) {
	const size_t page = 4096;
	size_t padded = (n + 15) / 16 * 16, length = (padded + page - 1) / page * page;
	if (n > 4ull << 30) return OUT_OF_MEMORY;
	char *pages = (char *)mmap(0, length + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pages == MAP_FAILED) return OUT_OF_MEMORY;
	mprotect(pages + length, page, PROT_NONE);
	memset(pages, 0xff, length); // NaN
	*p = (uint64_t)(pages + length - padded);
	allocations[*p] = {pages, length + page};
	return 0;
}
API cuMemFreeAsync(uint64_t p, void *) {
	auto b = allocations.find(p);
	if (b == allocations.end()) return INVALID_VALUE;
	munmap(b->second.pages, b->second.length);
	allocations.erase(b);
	return 0;
}
API cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t n, void *) { return memcpy((void *)to, from, n), 0; }
API cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t n, void *) { return memcpy(to, (void *)from, n), 0; }
API cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t n, void *) { return memcpy((void *)to, (void *)from, n), 0; }

API cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                   void *, void **, void **extra) {
	if (!gx || !gy || !gz || !bx || by != 1 || bz != 1 || gy > 65535 || gz > 65535 || bx > MOST_THREADS || shared > MOST_SHARED)
		return INVALID_VALUE;
	if (!stacks) stacks = (char *)mmap(0, (size_t)STACK * MOST_THREADS, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	kernel = (Kernel)f;
	params = extra[1];
	blockDim = {bx, 1, 1};
	gridDim = {gx, gy, gz};
	for (blockIdx.z = 0; blockIdx.z < gz; blockIdx.z++)
		for (blockIdx.y = 0; blockIdx.y < gy; blockIdx.y++)
			for (blockIdx.x = 0; blockIdx.x < gx; blockIdx.x++) {
				memset(dynamicShared, 0xff, shared);
				runBlock(bx);
			}
	return 0;
}
