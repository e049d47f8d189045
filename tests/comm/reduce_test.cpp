#include "penteract/comm/reduce.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "comm/values.h"
#include "penteract/base/check.h"

namespace penteract::comm {
namespace {

using testing::same_bits;
using testing::serial_sum;
using testing::values;

Bytes view_of(const at::Tensor& t) {
  return {static_cast<const std::byte*>(t.data_ptr()), static_cast<size_t>(t.nbytes())};
}
std::byte* data_of(const at::Tensor& t) { return static_cast<std::byte*>(t.data_ptr()); }

TEST(Reduce, HasTheBitsOfASerialSumInMemberOrder) {
  for (at::ScalarType dtype : {at::kFloat, at::kDouble, at::kBFloat16, at::kLong}) {
    for (int n : {1, 2, 3, 7}) {
      for (int64_t count : {0, 1, 17, 2048, 5001}) {
        for (bool maximum : {false, true}) {
          std::vector<at::Tensor> members;
          std::vector<Bytes> views;
          for (int i = 0; i < n; ++i) views.push_back(view_of(members.emplace_back(values(i, {count}, dtype))));
          at::Tensor out = at::empty({count}, dtype);
          reduce_views(maximum ? ReduceOp::max : ReduceOp::sum, dtype, views, data_of(out));
          EXPECT_TRUE(same_bits(out, serial_sum(n, {count}, dtype, maximum))) << n << " " << count << " " << dtype;
        }
      }
    }
  }
}

TEST(Reduce, OutMayBeAnyView) {
  for (at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    for (int own = 0; own < 3; ++own) {
      std::vector<at::Tensor> members;
      std::vector<Bytes> views;
      for (int i = 0; i < 3; ++i) views.push_back(view_of(members.emplace_back(values(i, {5001}, dtype))));
      reduce_views(ReduceOp::sum, dtype, views, data_of(members[own]));
      EXPECT_TRUE(same_bits(members[own], serial_sum(3, {5001}, dtype))) << own;
    }
  }
}

TEST(Reduce, Bf16IsRoundedOnceToNearestEven) {
  // 256 + 1 + 1: with a rounding after each term it stays 256 (bf16 has 8 bits); in fp32 it is 258.
  at::Tensor a = at::empty({20}, at::kBFloat16), b = at::empty({20}, at::kBFloat16);
  for (int i = 0; i < 20; ++i) {
    a.data_ptr<c10::BFloat16>()[i] = 256.f;
    b.data_ptr<c10::BFloat16>()[i] = 1.f;
  }
  at::Tensor out = at::empty({20}, at::kBFloat16);
  reduce_views(ReduceOp::sum, at::kBFloat16, std::vector<Bytes>{view_of(a), view_of(b), view_of(b)}, data_of(out));
  for (int i = 0; i < 20; ++i) EXPECT_EQ(static_cast<float>(out.data_ptr<c10::BFloat16>()[i]), 258.f);
  // 257 lies between 256 and 258: ties go to the even mantissa.
  reduce_views(ReduceOp::sum, at::kBFloat16, std::vector<Bytes>{view_of(a), view_of(b)}, data_of(out));
  EXPECT_EQ(static_cast<float>(out.data_ptr<c10::BFloat16>()[3]), 256.f);
}

TEST(Reduce, NanAndInfinityAreKept) {
  for (at::ScalarType dtype : {at::kFloat, at::kDouble, at::kBFloat16}) {
    for (int nan_at = 0; nan_at < 3; ++nan_at) {
      testing::with_type(dtype, [&](auto zero) {
        using T = decltype(zero);
        if constexpr (!std::is_integral_v<T>) {
          std::vector<at::Tensor> members;
          std::vector<Bytes> views;
          for (int i = 0; i < 3; ++i) {
            at::Tensor t = values(i, {9}, dtype);
            if (i == nan_at) t.data_ptr<T>()[4] = static_cast<T>(std::nanf(""));
            if (i == nan_at) t.data_ptr<T>()[5] = static_cast<T>(std::numeric_limits<float>::infinity());
            views.push_back(view_of(members.emplace_back(t)));
          }
          for (ReduceOp op : {ReduceOp::sum, ReduceOp::max}) {
            at::Tensor out = at::empty({9}, dtype);
            reduce_views(op, dtype, views, data_of(out));
            EXPECT_TRUE(std::isnan(static_cast<double>(out.data_ptr<T>()[4]))) << dtype << nan_at;
            EXPECT_TRUE(std::isinf(static_cast<double>(out.data_ptr<T>()[5])));
            EXPECT_TRUE(std::isfinite(static_cast<double>(out.data_ptr<T>()[3])));
          }
        }
      });
    }
  }
}

TEST(Reduce, RefusesUnequalViewsAndOtherTypes) {
  const at::Tensor a = values(0, {4}, at::kFloat), b = values(1, {5}, at::kFloat);
  at::Tensor out = at::empty({5}, at::kFloat);
  EXPECT_THROW(reduce_views(ReduceOp::sum, at::kFloat, std::vector<Bytes>{view_of(a), view_of(b)}, data_of(out)),
               CheckFailure);
  EXPECT_THROW(reduce_views(ReduceOp::sum, at::kInt, std::vector<Bytes>{view_of(a)}, data_of(out)), CheckFailure);
}

}  // namespace
}  // namespace penteract::comm
