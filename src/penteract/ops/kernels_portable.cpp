#include <cstring>

#include "penteract/ops/kernels.h"

#define PENT_KERNEL_ISA portable
#include "penteract/ops/kernels_inl.h"
