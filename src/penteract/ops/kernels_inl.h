// One build of the kernels: included by kernels_avx2.cpp and kernels_portable.cpp after their target pragma, with
// PENT_KERNEL_ISA naming the namespace. Nothing of std may be instantiated here: a shared inline function compiled
// with AVX2 could replace the one that other processors run.
#pragma GCC diagnostic ignored "-Wpsabi"
#pragma GCC optimize("O3")

namespace penteract::ops::PENT_KERNEL_ISA {
namespace {

#include "penteract/ops/vec_inl.h"

#include "penteract/ops/product_inl.h"
#include "penteract/ops/row_inl.h"

template <class A>
void adamw(A* master, A* exp_avg, A* exp_avg_sq, const A* grad, int64_t n, const AdamwConstants& constants) {
  constexpr int64_t L = Vec<A>::kLanes;
  const A decay = static_cast<A>(constants.decay), weight1 = static_cast<A>(1 - constants.beta1);
  const A beta2 = static_cast<A>(constants.beta2), weight2 = static_cast<A>(1 - constants.beta2);
  const A step_size = static_cast<A>(constants.step_size), bias2_sqrt = static_cast<A>(constants.bias2_sqrt);
  const A eps = static_cast<A>(constants.eps), scale = static_cast<A>(constants.grad_scale);
  for (int64_t i = 0; i < n; i += L) {
    const int64_t left = n - i;
    const VecOf<A> g = load_upto<A>(grad + i, left) * scale;
    VecOf<A> m = load_upto<A>(exp_avg + i, left), v = load_upto<A>(exp_avg_sq + i, left);
    m += (g - m) * weight1;
    v = v * beta2 + g * g * weight2;
    store_upto<A>(exp_avg + i, left, m);
    store_upto<A>(exp_avg_sq + i, left, v);
    const VecOf<A> p = load_upto<A>(master + i, left) * decay;
    store_upto<A>(master + i, left, p - m / (vec_sqrt(v) / bias2_sqrt + eps) * step_size);
  }
}

template <class A>
double sum_of_squares(const A* x, int64_t n) {
  typedef A Quarter __attribute__((vector_size(4 * sizeof(A))));
  DoubleVec sum[4] = {};
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) {
      Quarter q;
      __builtin_memcpy(&q, x + i + 4 * v, sizeof q);
      const DoubleVec d = __builtin_convertvector(q, DoubleVec);
      sum[v] += d * d;
    }
  }
  double total = sum_lanes((sum[0] + sum[1]) + (sum[2] + sum[3]));
  for (; i < n; ++i) total += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return total;
}

template <class T>
constexpr Kernels<T> table() {
  using A = Acc<T>;
  return {widen<T>,
          narrow<T>,
          few_nt<T>,
          few_nn<T>,
          few_wgrad<T>,
          row_max<T>,
          row_sum_exp<T>,
          row_cross_entropy_backward<T>,
          row_softmax<T>,
          row_rms_norm<T>,
          row_rms_norm_backward<T>,
          row_swiglu<T>,
          row_swiglu_backward<T>,
          row_rope<T>,
          row_weighted_sum<T>,
          row_dot<T>,
          adamw<A>,
          sum_of_squares<A>};
}

}  // namespace

extern const Kernels<double> kDouble;
extern const Kernels<float> kFloat;
extern const Kernels<Bf16> kBf16;
const Kernels<double> kDouble = table<double>();
const Kernels<float> kFloat = table<float>();
const Kernels<Bf16> kBf16 = table<Bf16>();

}  // namespace penteract::ops::PENT_KERNEL_ISA
