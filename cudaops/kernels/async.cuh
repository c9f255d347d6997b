// Copies from global to shared memory that a thread starts and does not wait for (cp.async, sm_80 on; before, plain copies).
// The copies that a thread has started since its last commit form a group; it waits for groups in their order. Other
// threads see the data after a barrier behind the wait.
#pragma once

// copyAsync copies B bytes (4 or 16, both addresses multiples of B); where not valid it writes zeros and reads nothing.
template <int B> __device__ __forceinline__ void copyAsync(float *shared, const float *global, bool valid) {
#if __CUDA_ARCH__ >= 800
	unsigned to = (unsigned)__cvta_generic_to_shared(shared);
	int n = valid ? B : 0;
	if (B == 16)
		asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(global), "r"(n) : "memory");
	else
		asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(global), "r"(n) : "memory");
#else
	if (B == 16)
		*(float4 *)shared = valid ? *(const float4 *)global : make_float4(0, 0, 0, 0);
	else
		*shared = valid ? *global : 0;
#endif
}

__device__ __forceinline__ void commitAsync() {
#if __CUDA_ARCH__ >= 800
	asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// waitAsync waits until at most pending (0 to 3) groups of this thread are not there yet.
__device__ __forceinline__ void waitAsync(unsigned pending) {
#if __CUDA_ARCH__ >= 800
	switch (pending) {
	case 0: asm volatile("cp.async.wait_group 0;" ::: "memory"); break;
	case 1: asm volatile("cp.async.wait_group 1;" ::: "memory"); break;
	case 2: asm volatile("cp.async.wait_group 2;" ::: "memory"); break;
	default: asm volatile("cp.async.wait_group 3;" ::: "memory");
	}
#endif
}
