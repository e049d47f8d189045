#include "penteract/ops/kernels.h"

namespace penteract::ops {

#define PENT_DECLARE_TABLES(isa)        \
  namespace isa {                       \
  extern const Kernels<double> kDouble; \
  extern const Kernels<float> kFloat;   \
  extern const Kernels<Bf16> kBf16;     \
  }
PENT_DECLARE_TABLES(avx2)
PENT_DECLARE_TABLES(portable)

namespace {

bool has_avx2() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
  return false;
#endif
}

}  // namespace

#if defined(__x86_64__)
#define PENT_CHOOSE(name) has_avx2() ? avx2::name : portable::name
#else
#define PENT_CHOOSE(name) portable::name
#endif

#define PENT_DEFINE_ACCESS(type, name)                      \
  template <>                                               \
  const Kernels<type>& kernels<type>() {                    \
    static const Kernels<type>& chosen = PENT_CHOOSE(name); \
    return chosen;                                          \
  }                                                         \
  template <>                                               \
  const Kernels<type>& portable_kernels<type>() {           \
    return portable::name;                                  \
  }
PENT_DEFINE_ACCESS(double, kDouble)
PENT_DEFINE_ACCESS(float, kFloat)
PENT_DEFINE_ACCESS(Bf16, kBf16)

bool has_native_bf16() {
#if defined(__x86_64__)
  static const bool native = __builtin_cpu_supports("avx512bf16");
  return native;
#else
  return false;
#endif
}

}  // namespace penteract::ops
