// The CPU operators at the sizes of the 16-rank demonstration (hidden 256, 32 local experts of width 512, a vocabulary
// shard of 75,968), each beside plain ATen in the same run: medians, rates, ratios.
//   ops_bench [threads = 1] [experts | products | loss | blocks | optimizer]
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <string_view>
#include <vector>

#include "penteract/ops/adamw.h"
#include "penteract/ops/attention.h"
#include "penteract/ops/cross_entropy.h"
#include "penteract/ops/grouped_matmul.h"
#include "penteract/ops/kernels.h"
#include "penteract/ops/matmul.h"
#include "penteract/ops/rms_norm.h"
#include "penteract/ops/rope.h"
#include "penteract/ops/swiglu.h"

namespace {

using namespace penteract::ops;

// One thread is timed by its processor time, which other work on the machine disturbs less than the clock on the wall.
double now_ms() {
  timespec time{};
  clock_gettime(at::get_num_threads() == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) * 1e-6;
}

double median_ms(const std::function<void()>& f) {
  f();
  std::vector<double> times;
  double total = 0;
  while (times.size() < 5 || (total < 50 && times.size() < 101)) {
    const double start = now_ms();
    f();
    times.push_back(now_ms() - start);
    total += times.back();
  }
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

// work: operations or bytes of one call; unit: "GFLOP/s" or "GB/s".
void compare(const char* name, double work, const char* unit, const std::function<void()>& ours,
             const std::function<void()>& plain) {
  const double mine = median_ms(ours), theirs = median_ms(plain);
  fmt::print("{:44} {:9.3f} ms {:8.1f} {:8}  plain {:9.3f} ms  {:6.2f} x\n", name, mine, work / mine / 1e6, unit,
             theirs, theirs / mine);
}

at::Tensor random(at::IntArrayRef sizes, at::ScalarType dtype) {
  return at::empty(sizes, at::TensorOptions().dtype(at::kFloat)).uniform_(-1, 1).to(dtype);
}

// whole: the plain version of a large bfloat16 matrix widens it all, since ATen's own product takes seconds.
void products(at::ScalarType dtype, int64_t m, int64_t n, int64_t k, bool whole = false) {
  const auto x = random({m, k}, dtype), w = random({n, k}, dtype), dy = random({m, n}, dtype);
  const auto grad = random({n, k}, at::kFloat);
  const auto wide = [&](const at::Tensor& t) { return whole ? t.to(at::kFloat) : t; };
  const double work = 2.0 * static_cast<double>(m * n * k);
  const auto title = [&](const char* what) {
    return fmt::format("{} {} {}x{}x{}", what, c10::toString(dtype), m, n, k);
  };
  compare(
      title("nt").c_str(), work, "GFLOP/s", [&] { matmul_nt(x, w); }, [&] { wide(x).mm(wide(w).t()).to(dtype); });
  compare(
      title("nn").c_str(), work, "GFLOP/s", [&] { matmul_nn(dy, w); }, [&] { wide(dy).mm(wide(w)).to(dtype); });
  compare(
      title("wgrad").c_str(), work, "GFLOP/s", [&] { wgrad_accumulate(dy, x, grad); },
      [&] { grad.add_(wide(dy).t().mm(wide(x))); });
}

// The plain version widens each expert's operands and calls the float product.
void experts(at::ScalarType dtype, int64_t rows, int64_t n, int64_t k) {
  const int64_t groups = 32;
  std::vector<int64_t> counts;
  for (int64_t g = 0; g < groups; ++g) counts.push_back(rows);
  const auto x = random({groups * rows, k}, dtype), w = random({groups, n, k}, dtype);
  const auto dy = random({groups * rows, n}, dtype), grad = random({groups, n, k}, at::kFloat);
  const double weights = static_cast<double>(groups * n * k), bytes = weights * static_cast<double>(w.element_size());
  const auto title = [&](const char* what) {
    return fmt::format("{} {} 32 x {} rows [{},{}]", what, c10::toString(dtype), rows, n, k);
  };
  const auto each = [&](const auto& f) {
    for (int64_t g = 0; g < groups; ++g) f(g, x.narrow(0, g * rows, rows), dy.narrow(0, g * rows, rows));
  };
  const auto wide = [](const at::Tensor& t) { return t.to(at::kFloat); };
  compare(
      title("nt").c_str(), bytes, "GB/s", [&] { grouped_matmul_nt(x, w, counts); },
      [&] {
        each([&](int64_t g, const at::Tensor& xg, const at::Tensor&) {
          wide(xg).mm(wide(w.select(0, g)).t()).to(dtype);
        });
      });
  compare(
      title("nn").c_str(), bytes, "GB/s", [&] { grouped_matmul_nn(dy, w, counts); },
      [&] {
        each([&](int64_t g, const at::Tensor&, const at::Tensor& dg) { wide(dg).mm(wide(w.select(0, g))).to(dtype); });
      });
  compare(
      title("wgrad").c_str(), 8 * weights, "GB/s", [&] { grouped_wgrad_accumulate(dy, x, counts, grad); },
      [&] {
        each([&](int64_t g, const at::Tensor& xg, const at::Tensor& dg) {
          grad.select(0, g).addmm_(wide(dg).t(), wide(xg));
        });
      });
}

void loss(at::ScalarType dtype) {
  const auto logits = random({128, 75968}, dtype), scratch = logits.clone();
  const auto targets = at::zeros({128}, at::TensorOptions().dtype(at::kLong));
  const auto dloss = random({128}, at::kFloat);
  const auto max = row_max(logits), lse = max + row_sum_exp(logits, max).log();
  const double bytes = static_cast<double>(logits.nbytes());
  compare(
      "row_max 128x75968", bytes, "GB/s", [&] { row_max(logits); }, [&] { logits.amax(1); });
  compare(
      "row_sum_exp", bytes, "GB/s", [&] { row_sum_exp(logits, max); },
      [&] { (logits.to(at::kFloat) - max.unsqueeze(1)).exp_().sum(1); });
  compare(
      "cross_entropy_backward_", 2 * bytes, "GB/s", [&] { cross_entropy_backward_(scratch, lse, targets, 0, dloss); },
      [&] {
        auto p = (logits.to(at::kFloat) - lse.unsqueeze(1)).exp_();
        p.scatter_add_(1, targets.unsqueeze(1), p.new_full({128, 1}, -1));
        scratch.copy_(p.mul_(dloss.unsqueeze(1)));
      });
}

void blocks(at::ScalarType dtype) {
  const auto x = random({256, 256}, dtype), w = random({256}, dtype), dy = random({256, 256}, dtype);
  const auto rstd = rms_norm(x, w, 1e-6).rstd;
  const double bytes = static_cast<double>(x.nbytes());
  compare(
      "rms_norm 256x256", 2 * bytes, "GB/s", [&] { rms_norm(x, w, 1e-6); },
      [&] {
        const auto wide = x.to(at::kFloat);
        (wide * (wide.pow(2).mean(-1, true) + 1e-6).rsqrt()).to(dtype).mul(w);
      });
  compare(
      "rms_norm_backward 256x256", 3 * bytes, "GB/s", [&] { rms_norm_backward(dy, x, w, rstd); },
      [&] {
        const auto h = x.to(at::kFloat) * rstd.unsqueeze(1), d = dy.to(at::kFloat), g = d * w;
        ((g - h * (g * h).mean(-1, true)) * rstd.unsqueeze(1)).to(dtype);
        (d * h).sum(0);
      });
  const auto gate_up = random({256, 1024}, dtype), dact = random({256, 512}, dtype);
  compare(
      "swiglu 256x1024", 1.5 * static_cast<double>(gate_up.nbytes()), "GB/s", [&] { swiglu(gate_up); },
      [&] {
        at::Tensor(gate_up.narrow(1, 0, 512).sigmoid() * gate_up.narrow(1, 0, 512)).mul_(gate_up.narrow(1, 512, 512));
      });
  compare(
      "swiglu_backward 256x1024", 2.5 * static_cast<double>(gate_up.nbytes()), "GB/s",
      [&] { swiglu_backward(dact, gate_up); },
      [&] {
        const auto g = gate_up.narrow(1, 0, 512).to(at::kFloat), u = gate_up.narrow(1, 512, 512).to(at::kFloat);
        const auto s = g.sigmoid(), d = dact.to(at::kFloat);
        const auto out = at::empty(gate_up.sizes(), gate_up.options());
        out.narrow(1, 0, 512).copy_(d * u * s * (g * (1 - s) + 1));
        out.narrow(1, 512, 512).copy_(d * g * s);
      });
  const auto q = random({128, 1, 4, 32}, dtype), k = random({128, 1, 1, 32}, dtype), v = random({128, 1, 1, 32}, dtype);
  std::vector<int64_t> positions;
  for (int64_t t = 0; t < 128; ++t) positions.push_back(t);
  std::vector<double> frequencies;
  for (int i = 0; i < 16; ++i) frequencies.push_back(std::pow(1e6, -i / 16.0));
  const auto tables = make_rope_tables(positions, frequencies, at::kFloat);
  compare(
      "rope 128x4x32", 2 * static_cast<double>(q.nbytes()), "GB/s", [&] { rope(q, tables); },
      [&] {
        const auto c = tables.cos.view({128, 1, 1, 16}), s = tables.sin.view({128, 1, 1, 16});
        const auto a = q.narrow(3, 0, 16), b = q.narrow(3, 16, 16);
        const auto out = at::empty(q.sizes(), q.options());
        out.narrow(3, 0, 16).copy_(a * c - b * s);
        out.narrow(3, 16, 16).copy_(b * c + a * s);
      });
  // Zigzag at cp = 2: a rank's two segments of 64 against 256 gathered keys; plain: one masked softmax.
  const auto keys = random({256, 1, 1, 32}, dtype), values = random({256, 1, 1, 32}, dtype);
  const std::vector<AttentionBlock> list = {{0, 64, 0, 64, true}, {64, 64, 0, 192, false}, {64, 64, 192, 64, true}};
  const auto mask = at::zeros({128, 256}, at::TensorOptions().dtype(at::kBool));
  const auto masked = [&] {
    const auto scores = q.permute({1, 2, 0, 3}).matmul(keys.permute({1, 2, 3, 0})) * 0.17;
    return scores.masked_fill(mask, -1e9).softmax(-1).matmul(values.permute({1, 2, 0, 3}));
  };
  const double work = 4.0 * 4 * 32 * (2 * 64 * 32 + 64 * 192);
  const auto result = attention(q, keys, values, list, 0.17);
  compare(
      "attention, 3 blocks 128x256", work, "GFLOP/s", [&] { attention(q, keys, values, list, 0.17); },
      [&] { masked(); });
  compare(
      "attention_backward against forward", 2.5 * work, "GFLOP/s",
      [&] { attention_backward(q, q, keys, values, result.out, result.lse, list, 0.17); }, [&] { masked(); });
}

void optimizer() {
  const int64_t count = 20'000'000;
  const auto p = random({count}, at::kFloat), m = random({count}, at::kFloat), v = random({count}, at::kFloat).abs_();
  const auto g = random({count}, at::kFloat), out = random({count}, at::kBFloat16);
  const double bytes = 4.0 * static_cast<double>(count);
  const AdamwStep step{1e-4, 0.9, 0.95, 1e-8, 0.1, 10, 0.5};
  compare(
      "adamw_step 20M", 7 * bytes, "GB/s", [&] { adamw_step(p, m, v, g, step); },
      [&] {
        const auto scaled = g * 0.5;
        p.mul_(0.99999);
        m.lerp_(scaled, 0.1);
        v.mul_(0.95).addcmul_(scaled, scaled, 0.05);
        p.addcdiv_(m, v.sqrt().add_(1e-8), -1e-4);
      });
  compare(
      "round_to bf16 20M", 1.5 * bytes, "GB/s", [&] { round_to(p, out); }, [&] { out.copy_(p); });
  compare(
      "sum_of_squares 20M", bytes, "GB/s", [&] { sum_of_squares(g); }, [&] { g.norm().item<float>(); });
}

}  // namespace

int main(int argc, char** argv) {
  at::set_num_threads(argc > 1 ? std::atoi(argv[1]) : 1);
  const std::string_view only = argc > 2 ? argv[2] : "";
  const auto runs = [&](std::string_view part) { return only.empty() || only == part; };
  const at::NoGradGuard no_grad;
  fmt::print("threads {}, native bf16 {}\n", at::get_num_threads(), has_native_bf16());
  for (const auto dtype : {at::kBFloat16, at::kFloat}) {
    if (runs("experts")) {
      for (const int64_t rows : {1, 4, 16, 32}) {
        experts(dtype, rows, 1024, 256);
        experts(dtype, rows, 256, 512);
      }
    }
    if (runs("products")) {
      products(dtype, 128, 512, 256);
      products(dtype, 256, 1024, 256);
    }
  }
  if (runs("products")) products(at::kBFloat16, 128, 75968, 256, true);
  if (runs("loss")) loss(at::kBFloat16);
  if (runs("blocks")) blocks(at::kBFloat16);
  if (runs("optimizer")) optimizer();
  return 0;
}
