package main

import (
	"fmt"
	"strings"
)

// entry is the name under which the driver exports the function that CUDA 11's header calls name: many have had a
// suffix since their signature changed. A later suffix than the header's own must not be taken, for the same reason.
func entry(name string) string {
	if suffix, ok := suffixes[name]; ok {
		return name + suffix
	}
	return name
}

var suffixes = func() map[string]string {
	m := map[string]string{"cuTexRefSetAddress2D": "_v3"}
	for _, name := range strings.Fields(`
		cuDeviceTotalMem cuCtxCreate cuCtxDestroy cuCtxPopCurrent cuCtxPushCurrent
		cuDevicePrimaryCtxRelease cuDevicePrimaryCtxReset cuDevicePrimaryCtxSetFlags
		cuModuleGetGlobal cuLinkCreate cuLinkAddData cuLinkAddFile
		cuMemGetInfo cuMemAlloc cuMemAllocPitch cuMemFree cuMemGetAddressRange cuMemAllocHost
		cuMemHostGetDevicePointer cuMemHostRegister cuIpcOpenMemHandle
		cuMemcpyHtoD cuMemcpyDtoH cuMemcpyDtoD cuMemcpyDtoA cuMemcpyAtoD cuMemcpyHtoA cuMemcpyAtoH cuMemcpyAtoA
		cuMemcpyHtoAAsync cuMemcpyAtoHAsync cuMemcpy2D cuMemcpy2DUnaligned cuMemcpy3D
		cuMemcpyHtoDAsync cuMemcpyDtoHAsync cuMemcpyDtoDAsync cuMemcpy2DAsync cuMemcpy3DAsync
		cuMemsetD8 cuMemsetD16 cuMemsetD32 cuMemsetD2D8 cuMemsetD2D16 cuMemsetD2D32
		cuArrayCreate cuArrayGetDescriptor cuArray3DCreate cuArray3DGetDescriptor
		cuTexRefSetAddress cuTexRefGetAddress cuGraphicsResourceGetMappedPointer cuGraphicsResourceSetMapFlags
		cuStreamDestroy cuEventDestroy cuStreamBeginCapture cuGraphInstantiate`) {
		m[name] = "_v2"
	}
	return m
}()

// standIn is the C source of the link-time libcuda: for every function a jump through its slot in a table. The slots
// point to a function that fails until attnb_driver_open fills them. cuInit is not among them: gorgonia.org/cu calls it
// when its package is initialised, in every process that links it, and ends the process where it fails; ours
// succeeds and does nothing, and attnb_driver_open calls the driver's own.
func standIn(names []string) string {
	var b strings.Builder
	b.WriteString(`/* Made by the shim. Do not edit. */
#include <dlfcn.h>
#include <stddef.h>

static int absent(void) { return 500; } /* CUDA_ERROR_NOT_FOUND */

`)
	var jumps []string
	for _, name := range names {
		if name == "cuInit" {
			continue
		}
		jumps = append(jumps, name)
	}
	fmt.Fprintf(&b, "#define N %d\n", len(jumps))
	b.WriteString("__attribute__((visibility(\"hidden\"))) void *attnb_driver_table[N] = {[0 ... N - 1] = (void *)absent};\n")
	b.WriteString("static const char *const entries[N] = {\n")
	for _, name := range jumps {
		fmt.Fprintf(&b, "\t%q,\n", entry(name))
	}
	b.WriteString(`};

#if defined(__x86_64__)
#define JUMP(name, slot) \
	__asm__(".text\n.globl " #name "\n.type " #name ",@function\n" #name ":\n\tjmp *attnb_driver_table+8*" #slot "(%rip)\n");
#elif defined(__aarch64__)
#define JUMP(name, slot) \
	__asm__(".text\n.globl " #name "\n.type " #name ",%function\n" #name ":\n\tadrp x16, attnb_driver_table+8*" #slot \
	        "\n\tldr x16, [x16, #:lo12:attnb_driver_table+8*" #slot "]\n\tbr x16\n");
#else
#error "no stand-in for this processor"
#endif
`)
	for slot, name := range jumps {
		fmt.Fprintf(&b, "JUMP(%s, %d)\n", name, slot)
	}
	b.WriteString(`
int cuInit(unsigned flags) { (void)flags; return 0; }

/* attnb_driver_open loads the driver and initialises it. It returns the driver's result; where the library cannot be
   loaded, -1, and why in *why. */
int attnb_driver_open(const char **why) {
	void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
	if (lib == NULL) {
		*why = dlerror();
		return -1;
	}
	int (*init)(unsigned) = (int (*)(unsigned))dlsym(lib, "cuInit");
	if (init == NULL) {
		*why = "libcuda.so.1 has no cuInit";
		return -1;
	}
	for (int i = 0; i < N; i++) {
		void *p = dlsym(lib, entries[i]);
		if (p != NULL) attnb_driver_table[i] = p;
	}
	return init(0);
}
`)
	return b.String()
}
