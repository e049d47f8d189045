// The inner loops of the CPU operators, on raw pointers: one table an element type, in two builds of one source
// (kernels_inl.h): AVX2 with FMA, and plain C++ vectors for every other processor. No allocation, no threads.
// T is double, float or Bf16; A is its accumulate type. All arithmetic is in A; results are rounded once to T.
// Equal bits for equal inputs on one processor, whatever the alignment. n may be any count, also 0.
#pragma once

#include <cstdint>
#include <type_traits>

namespace penteract::ops {

struct Bf16 {
  uint16_t bits;
};

template <class T>
using Acc = std::conditional_t<std::is_same_v<T, double>, double, float>;

struct AdamwConstants {
  double decay, beta1, beta2, step_size, bias2_sqrt, eps, grad_scale;  // decay = 1 - lr · weight_decay
};

template <class T>
struct Kernels {
  using A = Acc<T>;

  void (*widen)(const T* x, A* out, int64_t n);
  void (*narrow)(const A* x, T* out, int64_t n);

  // Products of few rows; weights are read once. x [m,k], dy [m,n] and w [n,k] dense.
  // y[i·ldy + j] = sum over k of x[i,k]·w[j,k], for j in [n0,n1).
  void (*few_nt)(const A* x, int64_t m, const T* w, int64_t n0, int64_t n1, int64_t k, T* y, int64_t ldy);
  // dx[i,c] = sum over n of dy[i,n]·w[n,c], for c in [k0,k1).
  void (*few_nn)(const A* dy, int64_t m, const T* w, int64_t n, int64_t k, int64_t k0, int64_t k1, T* dx);
  // grad[j,c] += sum over m of dy[m,j]·x[m,c], for j in [n0,n1).
  void (*few_wgrad)(const A* dy, const A* x, int64_t m, int64_t n, int64_t k, int64_t n0, int64_t n1, A* grad);

  // Rows of logits.
  A (*row_max)(const T* x, int64_t n);
  A (*row_sum_exp)(const T* x, int64_t n, A max);
  // x = (exp(x - lse) - [i == target])·scale; target < 0: none.
  void (*row_cross_entropy_backward)(T* x, int64_t n, A lse, int64_t target, A scale);
  void (*row_softmax)(const T* x, T* out, int64_t n);

  // Rows of a block.
  A (*row_rms_norm)(const T* x, const T* weight, T* y, int64_t n, A eps);  // returns rstd
  void (*row_rms_norm_backward)(const T* dy, const T* x, const T* weight, A rstd, T* dx, A* dweight, int64_t n);
  void (*row_swiglu)(const T* gate, const T* up, T* y, int64_t n);
  void (*row_swiglu_backward)(const T* dy, const T* gate, const T* up, T* dgate, T* dup, int64_t n);
  // Turns (x[i], x[i+half]) by the angle of cos[i], sign·sin[i].
  void (*row_rope)(const T* x, const A* cos, const A* sin, A sign, T* out, int64_t half);
  // out = sum over j ascending of weights[j]·rows[j]; weights null: all 1.
  void (*row_weighted_sum)(const T* const* rows, const A* weights, int64_t count, T* out, int64_t n);
  A (*row_dot)(const T* x, const T* y, int64_t n);

  // Flat ranges of the optimizer, in A.
  void (*adamw)(A* master, A* exp_avg, A* exp_avg_sq, const A* grad, int64_t n, const AdamwConstants& constants);
  double (*sum_of_squares)(const A* x, int64_t n);
};

// The build for this processor, chosen once; and the portable one, which tests compare with it.
template <class T>
const Kernels<T>& kernels();
template <class T>
const Kernels<T>& portable_kernels();

// True where the processor multiplies bfloat16 itself (AVX512-BF16 or AMX), so that ATen's products are fast.
bool has_native_bf16();

}  // namespace penteract::ops
