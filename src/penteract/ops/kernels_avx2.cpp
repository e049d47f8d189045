#include <cstring>

#include "penteract/ops/kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>

#pragma GCC target("avx2,fma")
#define PENT_KERNEL_ISA avx2
#define PENT_KERNEL_AVX2  // own: a compiler behind ccache does not define __AVX2__ after the pragma
#include "penteract/ops/kernels_inl.h"
#endif
