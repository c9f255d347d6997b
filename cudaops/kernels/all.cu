// Every kernel, as one translation unit: one image a processor generation.

#include "gather.cu"

#include "add.cu"
#include "context.cu"
#include "decode.cu"
#include "gemm.cu"
#include "prefill.cu"
#include "rope.cu"
#include "softmax.cu"
