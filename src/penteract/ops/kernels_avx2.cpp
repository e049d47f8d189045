#include <cstring>

#include "penteract/ops/kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>

#pragma GCC target("avx2,fma")
#define PENT_KERNEL_ISA avx2
#include "penteract/ops/kernels_inl.h"
#endif
