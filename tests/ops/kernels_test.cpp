#include "penteract/ops/kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ops/reference.h"

namespace penteract::ops {
namespace {

using namespace test;

// exp through the kernel that shows it: one element, max 0.
float exp_of(const Kernels<float>& table, float x) { return table.row_sum_exp(&x, 1, 0.0f); }

TEST(Kernels, ExpIsWithinTwoUlpEverywhere) {
  for (const auto* table : {&kernels<float>(), &portable_kernels<float>()}) {
    double worst = 0;
    for (float x = -87.3f; x < 88.7f; x += 0.0137f) {
      const double exact = std::exp(static_cast<double>(x));
      const double ulp = std::nextafter(static_cast<float>(exact), std::numeric_limits<float>::infinity()) -
                         static_cast<double>(static_cast<float>(exact));
      worst = std::max(worst, std::abs(exp_of(*table, x) - exact) / ulp);
    }
    EXPECT_LE(worst, 2);
    EXPECT_EQ(exp_of(*table, 0), 1);
    EXPECT_EQ(exp_of(*table, -std::numeric_limits<float>::infinity()), 0);
    EXPECT_EQ(exp_of(*table, -200), 0);
    EXPECT_EQ(exp_of(*table, 89), std::numeric_limits<float>::infinity());
    EXPECT_NEAR(exp_of(*table, -100), std::exp(-100.0), 2e-45);  // denormal
    EXPECT_TRUE(std::isnan(exp_of(*table, std::numeric_limits<float>::quiet_NaN())));
  }
}

// The two builds differ by fused multiply-add alone.
TEST(Kernels, PortableBuildAgrees) {
  const int64_t m = 5, n = 19, k = 45;
  const auto x = normal({m, k}, "x", at::kFloat), w = normal({n, k}, "w", at::kBFloat16);
  const auto dy = normal({m, n}, "dy", at::kFloat);
  const auto run = [&](const Kernels<Bf16>& table) {
    auto y = at::zeros({m, n}, w.options()), dx = at::zeros({m, k}, w.options()), soft = at::zeros({n, k}, w.options());
    auto grad = at::zeros({n, k}, x.options());
    const auto* ws = static_cast<const Bf16*>(w.data_ptr());
    table.few_nt(x.data_ptr<float>(), m, ws, 0, n, k, static_cast<Bf16*>(y.data_ptr()), n);
    table.few_nn(dy.data_ptr<float>(), m, ws, n, k, 0, k, static_cast<Bf16*>(dx.data_ptr()));
    table.few_wgrad(dy.data_ptr<float>(), x.data_ptr<float>(), m, n, k, 0, n, grad.data_ptr<float>());
    for (int64_t i = 0; i < n; ++i) table.row_softmax(ws + i * k, static_cast<Bf16*>(soft.data_ptr()) + i * k, k);
    return std::vector<at::Tensor>{y, dx, grad, soft};
  };
  const auto native = run(kernels<Bf16>()), portable = run(portable_kernels<Bf16>());
  for (size_t i = 0; i < native.size(); ++i) EXPECT_LE(relative_error(native[i], portable[i]), kBf16Unit) << i;
  const auto reference = x.mm(w.to(at::kFloat).t());
  EXPECT_LE(relative_error(portable[0], reference), 2 * kBf16Unit);
}

TEST(Kernels, BitsDoNotDependOnAlignment) {
  const auto row = normal({4096}, "row", at::kFloat);
  const float* aligned = row.data_ptr<float>();
  std::vector<float> moved(4097);
  std::memcpy(moved.data() + 1, aligned, 4096 * sizeof(float));
  EXPECT_EQ(kernels<float>().row_sum_exp(aligned, 4096, 1), kernels<float>().row_sum_exp(moved.data() + 1, 4096, 1));
  EXPECT_EQ(kernels<float>().row_dot(aligned, aligned, 4095),
            kernels<float>().row_dot(moved.data() + 1, moved.data() + 1, 4095));
}

}  // namespace
}  // namespace penteract::ops
