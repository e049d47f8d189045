// What the tests of ops/ share: reproducible inputs, autograd of the plain-ATen references, error measures.
#pragma once

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cstring>
#include <limits>
#include <string_view>
#include <vector>

#include "penteract/base/check.h"
#include "penteract/base/rng.h"

namespace penteract::ops::test {

constexpr double kFloatUnit = 0x1p-24;  // largest relative error of one rounding to float
constexpr double kBf16Unit = 0x1p-8;
// Gradients in double against autograd of the reference.
constexpr double kDoubleBound = 1e-12;

// Standard normal numbers of the stream `name`, rounded to dtype.
inline at::Tensor normal(at::IntArrayRef sizes, std::string_view name, at::ScalarType dtype = at::kDouble) {
  auto out = at::empty(sizes, at::TensorOptions().dtype(at::kDouble));
  normal_range(philox_key(7, name), 0, out.numel(), out.data_ptr<double>());
  return out.to(dtype);
}

inline at::Tensor leaf(const at::Tensor& x) { return x.detach().to(at::kDouble).clone().requires_grad_(true); }

inline std::vector<at::Tensor> grads_of(const at::Tensor& out, const std::vector<at::Tensor>& inputs,
                                        const at::Tensor& dout) {
  return torch::autograd::grad({out}, inputs, {dout.to(at::kDouble)});
}

// max |a - b| / max |b|; infinite when a holds something that is not finite.
inline double relative_error(const at::Tensor& a, const at::Tensor& b) {
  if (a.sizes() != b.sizes()) return std::numeric_limits<double>::infinity();
  if (b.numel() == 0) return 0;
  const auto x = a.detach().to(at::kDouble), y = b.detach().to(at::kDouble);
  const double error = (x - y).abs().max().item<double>();
  const double scale = y.abs().max().item<double>();
  return error == error ? error / (scale > 0 ? scale : 1) : std::numeric_limits<double>::infinity();
}

// How often the largest |actual - expected| fills its elementwise bound; at most 1 is right.
inline double filled(const at::Tensor& actual, const at::Tensor& expected, const at::Tensor& bound) {
  if (actual.sizes() != expected.sizes()) return std::numeric_limits<double>::infinity();
  const auto error = (actual.detach().to(at::kDouble) - expected.detach().to(at::kDouble)).abs();
  const double share = (error / (bound.detach().to(at::kDouble) + 1e-300)).max().item<double>();
  return share == share ? share : std::numeric_limits<double>::infinity();
}

inline double unit_of(at::ScalarType dtype) {
  return dtype == at::kDouble ? 0x1p-53 : dtype == at::kFloat ? kFloatUnit : kBf16Unit;
}
inline double accumulate_unit_of(at::ScalarType dtype) { return dtype == at::kDouble ? 0x1p-53 : kFloatUnit; }

inline bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  return a.dtype() == b.dtype() && a.sizes() == b.sizes() && a.is_contiguous() && b.is_contiguous() &&
         (a.nbytes() == 0 || std::memcmp(a.data_ptr(), b.data_ptr(), a.nbytes()) == 0);
}

}  // namespace penteract::ops::test
