// The operators as plain ATen calls against the kernels: values, dtypes, shapes, NaN and ties. The kernels are compared
// with autograd of their formulas elsewhere in this folder.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <string>

#include "ops/reference.h"
#include "penteract/ops/adamw.h"
#include "penteract/ops/aten_scope.h"
#include "penteract/ops/attention.h"
#include "penteract/ops/cross_entropy.h"
#include "penteract/ops/grouped_matmul.h"
#include "penteract/ops/matmul.h"
#include "penteract/ops/permute.h"
#include "penteract/ops/rms_norm.h"
#include "penteract/ops/rope.h"
#include "penteract/ops/router.h"
#include "penteract/ops/swiglu.h"
#include "penteract/precision/precision.h"

namespace penteract::ops {
namespace {

using namespace test;
using Outputs = std::vector<at::Tensor>;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

at::Tensor ids(const std::vector<int64_t>& values) {
  auto out = at::empty({static_cast<int64_t>(values.size())}, at::TensorOptions().dtype(at::kLong));
  for (size_t i = 0; i < values.size(); ++i) out.data_ptr<int64_t>()[i] = values[i];
  return out;
}

at::Tensor magnitude(const at::Tensor& x) { return x.to(at::kDouble).abs(); }

bool equal_with_nan(const at::Tensor& a, const at::Tensor& b) {
  return a.dtype() == b.dtype() && a.sizes() == b.sizes() &&
         a.eq(b).logical_or(a.isnan().logical_and(b.isnan())).all().item<bool>();
}

class AtenTest : public ::testing::TestWithParam<at::ScalarType> {
 protected:
  struct Pair {
    at::Tensor kernel, aten;
  };

  // Runs f by the kernels, by ATen calls, and by ATen calls in many passes; f copies what it overwrites. Then calls
  // check(pairs) for the outputs of the second and of the third against those of the first.
  template <class F, class Check>
  void compare(const F& f, const Check& check) {
    const Outputs kernel = f();
    for (const int64_t elements : {AtenScope::kElementsPerPass, int64_t{50}}) {
      Outputs aten;
      {
        const AtenScope scope(elements);
        aten = f();
      }
      ASSERT_EQ(aten.size(), kernel.size());
      std::vector<Pair> pairs;
      for (size_t i = 0; i < kernel.size(); ++i) {
        EXPECT_EQ(aten[i].scalar_type(), kernel[i].scalar_type()) << i;
        ASSERT_EQ(aten[i].sizes(), kernel[i].sizes()) << i;
        EXPECT_TRUE(aten[i].is_contiguous()) << i;
        pairs.push_back({kernel[i], aten[i]});
      }
      check(pairs);
    }
  }

  // |aten - kernel| stays within the elementwise bound, and in double within 1e-12 of the largest element.
  void expect_close(const char* what, const Pair& pair, const at::Tensor& bound) {
    if (pair.kernel.numel() == 0) return;
    EXPECT_LE(filled(pair.aten, pair.kernel, bound), 1) << what;
    const double error = relative_error(pair.aten, pair.kernel);
    if (GetParam() == at::kDouble) {
      EXPECT_LE(error, kDoubleBound) << what;
    }
    auto& worst = worst_[std::string(what) + " " + c10::toString(GetParam())];
    worst = std::max(worst, error);
  }

  // Two values that were rounded to the dtype once each, from sums of `depth` roundings in the accumulate dtype of terms
  // that add up to `terms` in magnitude.
  at::Tensor rounded(const at::Tensor& value, const at::Tensor& terms, double depth, double roundings = 1) const {
    return magnitude(value) * (2.02 * roundings * unit_of(GetParam())) +
           terms.to(at::kDouble) * (2 * depth * accumulate_unit_of(GetParam()));
  }

  static void TearDownTestSuite() {
    for (const auto& [what, error] : worst_) fmt::print("worst of ATen against the kernel: {:.1e} {}\n", error, what);
  }

 private:
  static std::map<std::string, double> worst_;
};
std::map<std::string, double> AtenTest::worst_;

TEST_P(AtenTest, Products) {
  const auto dtype = GetParam();
  const auto accumulate = precision::accumulate_dtype(dtype);
  for (const auto& [m, n, k] :
       std::vector<std::array<int64_t, 3>>{{1, 1, 1}, {0, 3, 4}, {3, 0, 4}, {2, 3, 0}, {7, 6, 17}, {33, 70, 129}}) {
    const auto x = normal({m, k}, "x", dtype), w = normal({n, k}, "w", dtype), dy = normal({m, n}, "dy", dtype);
    const auto before = normal({n, k}, "grad", accumulate);
    compare(
        [&, n = n, k = k] {
          const auto grad = before.clone();
          wgrad_accumulate(dy, x, grad);
          return Outputs{matmul_nt(x, w), matmul_nn(dy, w), grad};
        },
        [&, m = m, n = n, k = k](const std::vector<Pair>& p) {
          const auto xs = magnitude(x), ws = magnitude(w), ds = magnitude(dy);
          expect_close("matmul_nt", p[0], rounded(p[0].kernel, xs.mm(ws.t()), static_cast<double>(k + 1)));
          expect_close("matmul_nn", p[1], rounded(p[1].kernel, ds.mm(ws), static_cast<double>(n + 1)));
          const auto terms = ds.t().mm(xs) + magnitude(before);
          expect_close("wgrad_accumulate", p[2], terms * (2 * static_cast<double>(m + 2) * accumulate_unit_of(dtype)));
        });
  }
}

TEST_P(AtenTest, GroupedProducts) {
  const auto dtype = GetParam();
  const auto accumulate = precision::accumulate_dtype(dtype);
  for (const auto& counts : std::vector<std::vector<int64_t>>{{0, 3, 21, 0, 1}, {0, 0}, {5}}) {
    const auto groups = static_cast<int64_t>(counts.size());
    int64_t rows = 0;
    for (const int64_t count : counts) rows += count;
    const int64_t n = 34, k = 41;
    const auto x = normal({rows, k}, "x", dtype), dy = normal({rows, n}, "dy", dtype);
    const auto w = normal({groups, n, k}, "w", dtype), before = normal({groups, n, k}, "grad", accumulate);
    compare(
        [&] {
          const auto grad = before.clone();
          grouped_wgrad_accumulate(dy, x, counts, grad);
          return Outputs{grouped_matmul_nt(x, w, counts), grouped_matmul_nn(dy, w, counts), grad};
        },
        [&](const std::vector<Pair>& p) {
          int64_t row = 0;
          for (int64_t g = 0; g < groups; ++g) {
            const int64_t count = counts[static_cast<size_t>(g)];
            const auto part = [&](const at::Tensor& t) { return t.narrow(0, row, count); };
            const auto xs = magnitude(part(x)), ws = magnitude(w.select(0, g)), ds = magnitude(part(dy));
            const Pair y{part(p[0].kernel), part(p[0].aten)}, dx{part(p[1].kernel), part(p[1].aten)};
            const Pair grad{p[2].kernel.select(0, g), p[2].aten.select(0, g)};
            expect_close("grouped_matmul_nt", y, rounded(y.kernel, xs.mm(ws.t()), static_cast<double>(k + 1)));
            expect_close("grouped_matmul_nn", dx, rounded(dx.kernel, ds.mm(ws), static_cast<double>(n + 1)));
            expect_close("grouped_wgrad_accumulate", grad,
                         (ds.t().mm(xs) + magnitude(before.select(0, g))) *
                             (2 * static_cast<double>(count + 2) * accumulate_unit_of(dtype)));
            EXPECT_TRUE(count > 0 || same_bits(grad.aten, before.select(0, g))) << g;
            row += count;
          }
        });
  }
}

TEST_P(AtenTest, RmsNorm) {
  const auto dtype = GetParam();
  for (const auto& [tokens, width] : std::vector<std::array<int64_t, 2>>{{0, 8}, {1, 1}, {3, 256}, {45, 37}}) {
    const auto x = normal({tokens, 3, width}, "x", dtype), w = normal({width}, "w", dtype);
    const auto dy = normal({tokens, 3, width}, "dy", dtype);
    const auto kept = rms_norm(x, w, 1e-6).rstd;
    compare(
        [&] {
          const auto [y, rstd] = rms_norm(x, w, 1e-6);
          const auto [dx, dweight] = rms_norm_backward(dy, x, w, kept);
          return Outputs{y, rstd, dx, dweight};
        },
        [&, tokens = tokens, width = width](const std::vector<Pair>& p) {
          const auto depth = static_cast<double>(width + 6);
          const auto inverse = kept.to(at::kDouble).view({tokens, 3, 1});
          const auto h = magnitude(x) * inverse, g = magnitude(dy) * magnitude(w);
          // Where the normed value is rounded apart, its product with the weight differs by a rounding more.
          expect_close("rms_norm y", p[0], rounded(p[0].kernel, magnitude(p[0].kernel), depth, 2));
          expect_close("rms_norm rstd", p[1], magnitude(kept) * (2 * depth * accumulate_unit_of(dtype)));
          const auto terms = (g + h * (g * h).mean(-1, true)) * inverse;
          expect_close("rms_norm dx", p[2], rounded(p[2].kernel, terms, depth));
          const auto sums = (magnitude(dy) * h).sum_to_size({width});
          expect_close("rms_norm dweight", p[3], rounded(sums, sums, static_cast<double>(3 * tokens) + depth));
        });
  }
}

TEST_P(AtenTest, Rope) {
  const auto dtype = GetParam();
  for (const auto& [tokens, batch, heads, dim] :
       std::vector<std::array<int64_t, 4>>{{0, 2, 1, 4}, {1, 1, 1, 2}, {5, 2, 3, 22}}) {
    std::vector<int64_t> positions;
    for (int64_t t = 0; t < tokens; ++t) positions.push_back(1000 * t + 3);
    std::vector<double> frequencies;
    for (int64_t i = 0; i < dim / 2; ++i) frequencies.push_back(std::pow(0.3, static_cast<double>(i)));
    const auto tables = make_rope_tables(positions, frequencies, precision::accumulate_dtype(dtype));
    const auto fused = normal({tokens, batch, heads + 1, dim}, "x", dtype);
    const auto x = fused.narrow(2, 0, heads);
    compare(
        [&] {
          return Outputs{rope(x, tables), rope(x, tables, true)};
        },
        [&, dim = dim](const std::vector<Pair>& p) {
          const auto half = magnitude(x).narrow(3, 0, dim / 2), other = magnitude(x).narrow(3, dim / 2, dim / 2);
          const auto terms = (half + other).repeat({1, 1, 1, 2});
          expect_close("rope", p[0], rounded(p[0].kernel, terms, 3));
          expect_close("rope inverse", p[1], rounded(p[1].kernel, terms, 3));
        });
  }
}

TEST_P(AtenTest, Swiglu) {
  const auto dtype = GetParam();
  for (const auto& [rows, width] : std::vector<std::array<int64_t, 2>>{{0, 3}, {2, 0}, {1, 1}, {7, 37}}) {
    const auto gate_up = normal({rows, 2 * width}, "x", dtype).mul(3), dy = normal({rows, width}, "dy", dtype);
    compare(
        [&] {
          return Outputs{swiglu(gate_up), swiglu_backward(dy, gate_up)};
        },
        [&, width = width](const std::vector<Pair>& p) {
          const auto gate = magnitude(gate_up).narrow(1, 0, width), up = magnitude(gate_up).narrow(1, width, width);
          // exp: one unit, and that of its argument times the argument.
          const auto exact = 8 + gate;
          const auto y = magnitude(p[0].kernel);
          expect_close("swiglu", p[0], rounded(y, y * exact, 1));
          const Pair dgate{p[1].kernel.narrow(1, 0, width), p[1].aten.narrow(1, 0, width)};
          const Pair dup{p[1].kernel.narrow(1, width, width), p[1].aten.narrow(1, width, width)};
          expect_close("swiglu dgate", dgate, rounded(dgate.kernel, magnitude(dy) * up * (1 + gate) * exact, 1));
          expect_close("swiglu dup", dup, rounded(dup.kernel, magnitude(dup.kernel) * exact, 1));
        });
  }
}

TEST_P(AtenTest, Attention) {
  const auto dtype = GetParam();
  const std::vector<std::vector<AttentionBlock>> layouts = {
      {{0, 12, 0, 12, true}},
      {{0, 4, 4, 4, true}, {0, 4, 0, 4, false}, {4, 4, 8, 4, true}, {4, 4, 0, 8, false}},
      {{0, 5, 0, 5, true}, {5, 0, 5, 0, true}, {6, 1, 5, 6, false}},
      {}};
  for (const auto& blocks : layouts) {
    for (const auto& [batch, heads, kv_heads, dim, v_dim] :
         std::vector<std::array<int64_t, 5>>{{1, 1, 1, 1, 1}, {2, 6, 2, 16, 16}, {2, 3, 3, 24, 17}}) {
      const auto q = normal({12, batch, heads, dim}, "q", dtype), dout = normal({12, batch, heads, v_dim}, "d", dtype);
      const auto k = normal({12, batch, kv_heads, dim}, "k", dtype),
                 v = normal({12, batch, kv_heads, v_dim}, "v", dtype);
      const double scale = 1 / std::sqrt(static_cast<double>(dim));
      const auto kept = attention(q, k, v, blocks, scale);
      compare(
          [&] {
            const auto [out, lse] = attention(q, k, v, blocks, scale);
            const auto [dq, dk, dv] = attention_backward(dout, q, k, v, kept.out, kept.lse, blocks, scale);
            return Outputs{out, lse, dq, dk, dv};
          },
          [&](const std::vector<Pair>& p) {
            EXPECT_TRUE(p[1].aten.isinf().equal(p[1].kernel.isinf()));
            const auto seen = p[1].kernel.isinf().logical_not();
            const Pair lse{p[1].kernel.masked_select(seen), p[1].aten.masked_select(seen)};
            // Some tens of roundings of terms of the size of the largest, then one to the dtype.
            const auto bound = [&](const at::Tensor& t, const at::Tensor& largest) {
              return rounded(t, at::zeros(t.sizes(), at::kDouble) + largest.max(), 64);
            };
            const auto scores = magnitude(q).sum(3).max() * magnitude(k).max() * scale + 1;
            expect_close("attention lse", lse, magnitude(lse.kernel) * 0 + scores * (64 * accumulate_unit_of(dtype)));
            expect_close("attention out", p[0], bound(p[0].kernel, magnitude(v) * scores));
            const auto slope = magnitude(dout).sum(3).max() * magnitude(v).max() * scores * scale;
            expect_close("attention dq", p[2], bound(p[2].kernel, slope * magnitude(k)));
            expect_close("attention dk", p[3], bound(p[3].kernel, slope * magnitude(q)));
            expect_close("attention dv", p[4], bound(p[4].kernel, magnitude(dout) * scores));
          });
    }
  }
}

TEST_P(AtenTest, CrossEntropy) {
  const auto dtype = GetParam();
  const auto accumulate = precision::accumulate_dtype(dtype);
  for (const auto& [tokens, vocab] : std::vector<std::array<int64_t, 2>>{{0, 7}, {3, 0}, {1, 1}, {6, 2503}}) {
    const auto logits = normal({tokens, vocab}, "logits").mul(5).to(dtype);
    const int64_t first = 11;
    std::vector<int64_t> places = {first, first - 1, first + vocab, -1, first + vocab - 1, 0};
    places.resize(static_cast<size_t>(tokens));
    const auto targets = ids(places), dloss = normal({tokens}, "dloss", accumulate);
    if (tokens > 2) dloss.select(0, 2).fill_(0);
    const auto max = row_max(logits), lse = max + row_sum_exp(logits, max).log();
    compare(
        [&] {
          const auto grad = logits.clone();
          cross_entropy_backward_(grad, lse, targets, first, dloss);
          return Outputs{row_max(logits), row_sum_exp(logits, max), target_logits(logits, targets, first), grad};
        },
        [&](const std::vector<Pair>& p) {
          EXPECT_TRUE(same_bits(p[0].aten, p[0].kernel));
          EXPECT_TRUE(same_bits(p[2].aten, p[2].kernel));
          // exp: one unit and that of its argument, up to 40; a cascade of sums.
          expect_close("row_sum_exp", p[1], magnitude(p[1].kernel) * (128 * accumulate_unit_of(dtype)));
          const auto probs = (logits.to(at::kDouble) - lse.to(at::kDouble).unsqueeze(1)).exp();
          const auto terms = magnitude(dloss).unsqueeze(1) * (probs + magnitude(p[3].kernel).gt(0)) * probs;
          expect_close("cross_entropy_backward_", p[3], rounded(p[3].kernel, terms + magnitude(p[3].kernel), 64));
        });
  }
}

TEST_P(AtenTest, CrossEntropyOfInfinitiesAndNaN) {
  const auto logits = normal({5, 21}, "logits", GetParam());
  logits.select(0, 0).select(0, 5).fill_(-kInf);
  logits.select(0, 1).select(0, 20).fill_(kNaN);
  logits.select(0, 2).fill_(-kInf);
  logits.select(0, 3).select(0, 2).fill_(kInf);
  logits.select(0, 4).fill_(kNaN);
  const auto targets = ids({5, 3, 3, 2, 1});
  auto dloss = normal({5}, "dloss", precision::accumulate_dtype(GetParam()));
  dloss.select(0, 4).fill_(0);
  compare(
      [&] {
        const auto max = row_max(logits), sum = row_sum_exp(logits, max), lse = max + sum.log();
        const auto grad = logits.clone();
        cross_entropy_backward_(grad, lse, targets, 0, dloss);
        return Outputs{max, sum, target_logits(logits, targets, 0), grad};
      },
      [&](const std::vector<Pair>& p) {
        EXPECT_TRUE(equal_with_nan(p[0].aten, p[0].kernel));
        EXPECT_TRUE(p[1].aten.isnan().equal(p[1].kernel.isnan()));
        EXPECT_TRUE(equal_with_nan(p[2].aten, p[2].kernel));
        EXPECT_TRUE(p[3].aten.isnan().equal(p[3].kernel.isnan()));
        EXPECT_TRUE(p[3].aten.select(0, 4).eq(0).all().item<bool>()) << "a row without a loss";
      });
}

TEST_P(AtenTest, Router) {
  const auto dtype = precision::accumulate_dtype(GetParam());
  for (const auto& [tokens, experts, k] : std::vector<std::array<int64_t, 3>>{{0, 4, 2}, {1, 1, 1}, {33, 29, 3}}) {
    // Halves: many equal probabilities in a row.
    const auto logits = normal({tokens, experts}, "logits", dtype).mul(2).round().div(2);
    const auto dweights = normal({tokens, k}, "dw", dtype),
               bias = normal({experts}, "bias", dtype).mul(8).round().div(8);
    const auto replay = logits.topk(k, 1, /*largest=*/false);
    for (const at::Tensor& extra :
         {at::Tensor(), normal({experts}, "extra", dtype), normal({tokens, experts}, "extra", dtype)}) {
      for (const bool norm : {false, true}) {
        for (const at::Tensor& shift : {at::Tensor(), bias}) {
          for (const at::Tensor& given : {at::Tensor(), std::get<1>(replay)}) {
            const auto kept = router_choose(logits, k, norm, shift, given);
            compare(
                [&, k = k] {
                  const auto choice = router_choose(logits, k, norm, shift, given);
                  return Outputs{choice.experts, choice.probs, choice.weights,
                                 router_backward(dweights, extra, kept, norm), router_backward({}, extra, kept, norm)};
                },
                [&](const std::vector<Pair>& p) {
                  EXPECT_TRUE(p[0].aten.equal(p[0].kernel));
                  const double unit = accumulate_unit_of(dtype);
                  const auto close = [&](const char* what, const Pair& pair, const at::Tensor& terms) {
                    expect_close(what, pair, terms * (2 * static_cast<double>(experts + 16) * unit));
                  };
                  close("router probs", p[1], magnitude(p[1].kernel));
                  close("router weights", p[2], magnitude(p[2].kernel));
                  auto dprobs = at::zeros(logits.sizes(), at::kDouble);
                  if (extra.defined()) dprobs = dprobs + magnitude(extra);
                  const auto probs = magnitude(kept.probs);
                  close("router dlogits", p[4], probs * (dprobs + (probs * dprobs).sum(1, true)));
                  auto d = magnitude(dweights);
                  const auto chosen = probs.gather(1, kept.experts);
                  if (norm) d = (d + (d * magnitude(kept.weights)).sum(1, true)) / chosen.sum(1, true);
                  dprobs = dprobs.scatter_add(1, kept.experts, d);
                  close("router dlogits", p[3], probs * (dprobs + (probs * dprobs).sum(1, true)));
                });
          }
        }
      }
    }
  }
}

TEST_P(AtenTest, RouterTiesAndNaN) {
  const auto dtype = precision::accumulate_dtype(GetParam());
  const auto logits = at::zeros({4, 70}, at::TensorOptions().dtype(dtype));  // more than a small sort has
  logits.select(0, 1).select(0, 66).fill_(1);
  logits.select(0, 1).select(0, 2).fill_(1);
  logits.select(0, 2).select(0, 3).fill_(kNaN);
  logits.select(0, 3).fill_(kNaN);
  const auto bias = at::zeros({70}, logits.options());
  bias.select(0, 0).fill_(kNaN);
  bias.select(0, 1).fill_(-kInf);
  bias.select(0, 5).fill_(kInf);
  for (const at::Tensor& shift : {at::Tensor(), bias}) {
    for (const int64_t k : {3, 70}) {
      compare(
          [&] {
            const auto choice = router_choose(logits, k, true, shift);
            return Outputs{choice.experts, choice.weights};
          },
          [&](const std::vector<Pair>& p) {
            EXPECT_TRUE(p[0].aten.equal(p[0].kernel)) << k;
            EXPECT_TRUE(p[1].aten.isnan().equal(p[1].kernel.isnan()));
          });
    }
  }
  const AtenScope scope;
  const auto choice = router_choose(logits, 3, true);
  const auto* experts = choice.experts.data_ptr<int64_t>();
  EXPECT_EQ(std::vector<int64_t>(experts, experts + 6), (std::vector<int64_t>{0, 1, 2, 2, 66, 0}));
  EXPECT_THROW(router_choose(logits, 3, true, {}, choice.experts + 68), CheckFailure);
}

TEST_P(AtenTest, Permute) {
  const auto dtype = GetParam();
  const auto accumulate = precision::accumulate_dtype(dtype);
  struct Case {
    int64_t rows, width;
    std::vector<int64_t> index;
  };
  for (const auto& [rows, width, list] :
       std::vector<Case>{{5, 19, {4, 0, 4, 2, 4, 0}}, {5, 19, {}}, {1, 1, {0}}, {3, 0, {1, 1}}, {0, 4, {}}}) {
    const auto index = ids(list);
    const auto x = normal({rows, width}, "x", dtype), y = normal({index.numel(), width}, "y", dtype);
    const auto before = normal({rows, width}, "into", accumulate);
    compare(
        [&, rows = rows] {
          const auto into = before.clone();
          add_rows(into, index, y);
          return Outputs{gather_rows(x, index), scatter_add_rows(y, index, rows), into};
        },
        [&](const std::vector<Pair>& p) {
          EXPECT_TRUE(same_bits(p[0].aten, p[0].kernel));
          const auto terms = at::zeros(x.sizes(), at::kDouble).index_add(0, index, magnitude(y));
          expect_close("scatter_add_rows", p[1], rounded(p[1].kernel, terms, 4));
          const auto sum = before.to(at::kDouble).index_add(0, index, y.to(at::kDouble));
          expect_close("add_rows", {sum, p[2].aten}, (terms + magnitude(before)) * (4 * accumulate_unit_of(dtype)));
        });
  }
}

TEST_P(AtenTest, Combine) {
  const auto dtype = GetParam();
  const auto accumulate = precision::accumulate_dtype(dtype);
  struct Case {
    int64_t rows, tokens, k;
    std::vector<int64_t> index;
  };
  // Rows 4 to 7 are not named; the last token has no row.
  for (const auto& [rows, tokens, k, list] : std::vector<Case>{
           {9, 4, 2, {3, 1, 8, 0, 2, -1, -1, -1}}, {1, 1, 1, {0}}, {0, 2, 2, {-1, -1, -1, -1}}, {3, 0, 2, {}}}) {
    const int64_t width = 37;
    const auto index = ids(list);
    const auto y = normal({rows, width}, "y", dtype), dout = normal({tokens, width}, "dout", dtype);
    const auto weights = normal({tokens, k}, "w", accumulate);
    compare(
        [&] {
          const auto [dy, dweights] = combine_rows_backward(dout, y, index, weights);
          return Outputs{combine_rows(y, index, weights), dy, dweights};
        },
        [&, k = k](const std::vector<Pair>& p) {
          const auto terms = combine_rows(magnitude(y), index, magnitude(weights));
          expect_close("combine_rows", p[0], rounded(p[0].kernel, terms, static_cast<double>(k + 1)));
          expect_close("combine_rows dy", p[1], rounded(p[1].kernel, magnitude(p[1].kernel), 2));
          const auto sums =
              combine_rows_backward(magnitude(dout), magnitude(y), index, weights.to(at::kDouble)).dweights;
          expect_close("combine_rows dweights", p[2], sums * (2 * (width + 2) * accumulate_unit_of(dtype)));
        });
  }
}

TEST_P(AtenTest, ChoicesWithoutARowReadNone) {
  const auto y = normal({2, 5}, "y", GetParam()), dout = normal({2, 5}, "dout", GetParam());
  y.select(0, 0).fill_(kNaN);
  dout.select(0, 1).fill_(kNaN);
  const auto weights = normal({2, 1}, "w", precision::accumulate_dtype(GetParam()));
  const auto index = ids({1, -1});
  const AtenScope scope;
  EXPECT_FALSE(combine_rows(y, index, weights).isnan().any().item<bool>());
  const auto [dy, dweights] = combine_rows_backward(dout, y, index, weights);
  EXPECT_FALSE(dy.isnan().any().item<bool>());
  EXPECT_FALSE(dweights.isnan().any().item<bool>());
  EXPECT_THROW(gather_rows(y, ids({2})), CheckFailure);
  EXPECT_THROW(combine_rows_backward(dout, y, ids({1, 1}), weights), CheckFailure);
}

TEST_P(AtenTest, Optimizer) {
  const auto dtype = precision::accumulate_dtype(GetParam());
  for (const int64_t count : {0, 1, 1003}) {
    const auto start = normal({count}, "master", dtype);
    compare(
        [&] {
          const auto master = start.clone(), m = at::zeros({count}, start.options());
          const auto v = at::zeros({count}, start.options());
          for (int64_t step = 1; step <= 3; ++step) {
            adamw_step(master, m, v, normal({count}, "grad" + std::to_string(step), dtype),
                       {1e-2, 0.9, 0.95, 1e-8, 0.1, step, 0.7});
          }
          const auto out = at::empty({count}, at::TensorOptions().dtype(GetParam()));
          round_to(start, out);
          const auto squares = sum_of_squares(start);
          EXPECT_TRUE(squares.finite);
          return Outputs{master, m, v, out, at::zeros({}, at::kDouble).fill_(squares.sum)};
        },
        [&](const std::vector<Pair>& p) {
          // A handful of roundings a step; the sizes are of order 1.
          const auto bound = [&](const at::Tensor& t) { return (magnitude(t) + 1) * (32 * accumulate_unit_of(dtype)); };
          expect_close("adamw master", p[0], bound(p[0].kernel));
          expect_close("adamw exp_avg", p[1], bound(p[1].kernel));
          expect_close("adamw exp_avg_sq", p[2], bound(p[2].kernel));
          EXPECT_TRUE(same_bits(p[3].aten, p[3].kernel));
          EXPECT_LE(relative_error(p[4].aten, p[4].kernel), 1e-13);
        });
  }
  const auto x = normal({101}, "x", dtype);
  const AtenScope scope(50);
  for (const double bad : {kNaN, -kInf}) {
    for (const int64_t place : {0, 60, 100}) {
      const auto y = x.clone();
      y.select(0, place).fill_(bad);
      EXPECT_FALSE(sum_of_squares(y).finite) << place;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, AtenTest, ::testing::Values(at::kDouble, at::kFloat, at::kBFloat16));

TEST(AtenScope, RmsNormRoundsBeforeTheWeightToo) {
  const auto x = normal({50, 96}, "x", at::kBFloat16), w = normal({96}, "w", at::kBFloat16);
  const auto kernel = rms_norm(x, w, 1e-6).y;
  const AtenScope scope;
  const auto mismatch = (rms_norm(x, w, 1e-6).y != kernel).sum().item<int64_t>();
  EXPECT_LE(mismatch, 4);  // a last bit of rstd may move a few roundings of 4,800
}

TEST(AtenScope, EndsWithItsBlockAndNests) {
  EXPECT_FALSE(AtenScope::is_open());
  {
    const AtenScope outer(10);
    {
      const AtenScope inner(20);
      EXPECT_EQ(AtenScope::elements_per_pass(), 20);
    }
    EXPECT_TRUE(AtenScope::is_open());
    EXPECT_EQ(AtenScope::elements_per_pass(), 10);
  }
  EXPECT_FALSE(AtenScope::is_open());
  EXPECT_EQ(AtenScope::elements_per_pass(), AtenScope::kElementsPerPass);
}

}  // namespace
}  // namespace penteract::ops
