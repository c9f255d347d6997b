//go:build cuda

package cuda

/*
#include <cuda.h>

#cgo noescape launch
#cgo nocallback launch

int attnb_driver_open(const char **why);

// What gorgonia.org/cu's header lacks (CUDA 11.2), and what its package does not wrap.
typedef struct CUmemPool_st *CUmemoryPool;
CUresult cuMemAllocAsync(CUdeviceptr *p, size_t bytes, CUstream stream);
CUresult cuMemFreeAsync(CUdeviceptr p, CUstream stream);
CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device);
CUresult cuMemPoolSetAttribute(CUmemoryPool pool, int attribute, void *value);
CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep);

static CUresult keepMemory(CUmemoryPool pool) {
	uint64_t all = ~(uint64_t)0;
	return cuMemPoolSetAttribute(pool, 4, &all); // CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
}

// And of CUDA 11.8: a launch with attributes.
typedef struct {
	int id, reserved;
	union { int on; char space[64]; } value;
} LaunchAttribute;
typedef struct {
	unsigned gx, gy, gz, bx, by, bz, shared;
	CUstream stream;
	LaunchAttribute *attributes;
	unsigned count;
} LaunchConfig;
CUresult cuLaunchKernelEx(const LaunchConfig *config, CUfunction f, void **params, void **extra);

// launch passes the parameters as one block: cu.Function.Launch takes none of more than 8 bytes. Where early, blocks come while those of the kernel
// before still run; that kernel's end they await themselves (kernels/common.cuh, begin).
static CUresult launch(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned threads, unsigned shared,
                       CUstream stream, void *params, size_t size, int early) {
	void *extra[] = {(void *)1, params, (void *)2, &size, (void *)0}; // CU_LAUNCH_PARAM_BUFFER_POINTER, _SIZE, _END
	if (!early) return cuLaunchKernel(f, gx, gy, gz, threads, 1, 1, shared, stream, NULL, extra);
	LaunchAttribute attribute = {6, 0, {1}}; // CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
	LaunchConfig config = {gx, gy, gz, threads, 1, 1, shared, stream, &attribute, 1};
	return cuLaunchKernelEx(&config, f, NULL, extra);
}
*/
import "C"

import (
	"fmt"
	"reflect"
	"sync"
	"unsafe"

	"gorgonia.org/cu"
)

// driverError is a CUresult from a call that cu does not wrap.
type driverError int

func (e driverError) Error() string { return explain(int(e)) }

func result(r C.CUresult) error {
	if r == C.CUDA_SUCCESS {
		return nil
	}
	return driverError(r)
}

// code is the CUresult of an error of the driver, from cu (whose type of it is not exported) or from here; -1: neither.
func code(err error) int {
	if v := reflect.ValueOf(err); v.Kind() == reflect.Int {
		return int(v.Int())
	}
	return -1
}

// explain gives the driver's own words for a CUresult.
func explain(code int) string {
	var name, text *C.char
	if C.cuGetErrorName(C.CUresult(code), &name) != C.CUDA_SUCCESS || C.cuGetErrorString(C.CUresult(code), &text) != C.CUDA_SUCCESS {
		return fmt.Sprintf("CUDA error %d", code)
	}
	return fmt.Sprintf("%s (%s)", C.GoString(text), C.GoString(name))
}

// openDriver loads the driver's library and initialises it, once a process.
var openDriver = sync.OnceValues(func() (code int, why string) {
	var text *C.char
	r := C.attnb_driver_open(&text)
	if text != nil {
		why = C.GoString(text)
	}
	return int(r), why
})

// pool is a device's own memory pool.
type pool struct{ p C.CUmemoryPool }

// devicePool returns the pool of a device, told to keep what is given back to it.
func devicePool(d cu.Device) (pool, error) {
	var p pool
	if err := result(C.cuDeviceGetDefaultMemPool(&p.p, C.CUdevice(d))); err != nil {
		return p, err
	}
	return p, result(C.keepMemory(p.p))
}

func (p pool) trim() error { return result(C.cuMemPoolTrimTo(p.p, 0)) }

func memAlloc(bytes int64, s cu.Stream) (pointer, error) {
	var p C.CUdeviceptr
	err := result(C.cuMemAllocAsync(&p, C.size_t(bytes), stream(s)))
	return pointer(p), err
}

func memFree(p pointer, s cu.Stream) error {
	return result(C.cuMemFreeAsync(C.CUdeviceptr(p), stream(s)))
}

// pinned returns host memory that the GPU reads and writes by itself.
func pinned(bytes int) ([]byte, error) {
	const deviceMap = 2 // CU_MEMHOSTALLOC_DEVICEMAP
	var p unsafe.Pointer
	if err := result(C.cuMemHostAlloc(&p, C.size_t(bytes), deviceMap)); err != nil {
		return nil, err
	}
	return unsafe.Slice((*byte)(p), bytes), nil
}

func freePinned(b []byte) error { return cu.MemFreeHost(unsafe.Pointer(unsafe.SliceData(b))) }

// onDevice is the address under which the GPU sees pinned memory.
func onDevice(b []byte) (pointer, error) {
	var p C.CUdeviceptr
	err := result(C.cuMemHostGetDevicePointer(&p, unsafe.Pointer(unsafe.SliceData(b)), 0))
	return pointer(p), err
}

// cu's handles are structs of one C pointer; their fields are not exported.
func stream(s cu.Stream) C.CUstream       { return *(*C.CUstream)(unsafe.Pointer(&s)) }
func function(f cu.Function) C.CUfunction { return *(*C.CUfunction)(unsafe.Pointer(&f)) }

// allowShared lets a kernel take more dynamic shared memory than the 48 KB that any may, and has the multiprocessor give
// as much room to shared memory as it can.
func allowShared(f cu.Function, bytes int) error {
	const carveout, most = 9, 100 // CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, percent
	if err := result(C.cuFuncSetAttribute(function(f), carveout, most)); err != nil {
		return err
	}
	return result(C.cuFuncSetAttribute(function(f), C.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, C.int(bytes)))
}

type grid struct{ x, y, z int }

// launchRaw queues a kernel. params holds no Go pointers.
func launchRaw(f cu.Function, g grid, threads, shared int, s cu.Stream, params unsafe.Pointer, size uintptr, early bool) error {
	return result(C.launch(function(f), C.uint(g.x), C.uint(g.y), C.uint(g.z), C.uint(threads), C.uint(shared),
		stream(s), params, C.size_t(size), C.int(flag(early))))
}
