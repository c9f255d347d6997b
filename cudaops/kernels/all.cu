// Every kernel, as one translation unit: one image a processor generation.

#include "gather.cu"

#include "add.cu"
#include "context.cu"
#include "decode.cu"
#include "gemm.cu"
#include "gemm_warpgroup.cu"
#include "halves.cu"
#include "halves_rows.cu"
#include "prefill.cu"
#include "prefill_halves.cu"
#include "prefill_warpgroup.cu"
#include "rope.cu"
#include "softmax.cu"
