// Collectives between rank threads: latency of small calls, rates of large ones, CPU time. Medians of several rounds.
//   comm_bench [--rounds N]
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include "penteract/comm/world.h"

namespace penteract::comm {
namespace {

using Clock = std::chrono::steady_clock;

struct Time {
  double wall_s = 0;  // rank 0's, of one call
  double cpu_s = 0;   // of all ranks together: what a call costs on a machine that others use too
};

double process_cpu_s() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

// Medians of the rounds; num_calls calls a round.
Time median_of(int num_ranks, int num_rounds, int num_calls, const std::function<void(RankContext&)>& call,
               const std::function<void(RankContext&)>& prepare) {
  std::vector<double> walls_s, cpus_s;
  const Status status = run_rank_threads(num_ranks, {.intra_op_threads = 1}, [&](RankContext& context) -> Status {
    prepare(context);
    for (int round = 0; round < num_rounds + 1; ++round) {
      context.world.barrier();
      const Clock::time_point start = Clock::now();
      const double cpu_start_s = process_cpu_s();
      for (int i = 0; i < num_calls; ++i) call(context);
      context.world.barrier();
      if (context.rank != 0 || round == 0) continue;
      walls_s.push_back(std::chrono::duration<double>(Clock::now() - start).count() / num_calls);
      cpus_s.push_back((process_cpu_s() - cpu_start_s) / num_calls);
    }
    return {};
  });
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", status.error().message().c_str());
    std::exit(1);
  }
  return {median(walls_s), median(cpus_s)};
}

void report(const char* name, int num_ranks, int64_t bytes, Time time) {
  std::printf("%-22s %2d ranks %9lld bytes %11.2f us, %7.2f GB/s, CPU %11.2f us\n", name, num_ranks,
              static_cast<long long>(bytes), time.wall_s * 1e6, static_cast<double>(bytes) / time.wall_s / 1e9,
              time.cpu_s * 1e6);
}

int run(int num_rounds) {
  struct Case {
    int num_ranks;
    int64_t bytes;
    int num_calls;
  };
  for (const Case& c : {Case{2, 1 << 10, 20000}, Case{2, 16 << 20, 10}, Case{4, 16 << 20, 5}, Case{16, 1 << 10, 500},
                        Case{16, 16 << 20, 3}}) {
    std::vector<at::Tensor> tensors(c.num_ranks), parts(c.num_ranks);
    for (at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
      const auto prepare = [&](RankContext& context) {
        const int64_t numel = c.bytes / static_cast<int64_t>(c10::elementSize(dtype));
        tensors[context.rank] = at::zeros({numel}, dtype);
        parts[context.rank] = at::zeros({numel / c.num_ranks}, dtype);
      };
      const std::string suffix = dtype == at::kFloat ? "fp32" : "bf16";
      const auto all_reduce = [&](RankContext& context) { context.world.all_reduce_sum(tensors[context.rank]); };
      report(("all_reduce " + suffix).c_str(), c.num_ranks, c.bytes,
             median_of(c.num_ranks, num_rounds, c.num_calls, all_reduce, prepare));
      const auto reduce_scatter = [&](RankContext& context) {
        context.world.reduce_scatter_into(tensors[context.rank], parts[context.rank]);
      };
      report(("reduce_scatter " + suffix).c_str(), c.num_ranks, c.bytes,
             median_of(c.num_ranks, num_rounds, c.num_calls, reduce_scatter, prepare));
      if (dtype != at::kFloat) continue;
      const auto all_gather = [&](RankContext& context) {
        context.world.all_gather_into(parts[context.rank], tensors[context.rank]);
      };
      report("all_gather", c.num_ranks, c.bytes, median_of(c.num_ranks, num_rounds, c.num_calls, all_gather, prepare));
    }
  }
  const auto churn = [](RankContext&) { at::empty({10 << 20}, at::kFloat).zero_(); };
  report("allocate and zero", 1, 40 << 20, median_of(1, num_rounds, 10, churn, [](RankContext&) {}));
  return 0;
}

}  // namespace
}  // namespace penteract::comm

int main(int argc, char** argv) {
  const bool given = argc == 3 && std::strcmp(argv[1], "--rounds") == 0;
  return penteract::comm::run(given ? std::max(1, std::atoi(argv[2])) : 7);
}
