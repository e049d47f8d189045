// The parity matrix: the models and layouts that the tests of every precision run, their one-rank references, and a
// tally of how near the errors come to their bounds.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "parity/layout_run.h"
#include "parity/small_models.h"
#include "penteract/topology/layout.h"

namespace penteract::parity {

// All have 5 layers, a vocabulary of 101 and a z-loss; but for the dense ones, 6 experts (2 a token) in 3 layers.
enum class Model : uint8_t {
  moe,         // 4 heads over 2, balanced by sequence
  tied,        // moe with tied embeddings
  bias,        // moe, balanced by router biases
  idle,        // 12 experts, 1 a token, 5 tokens a sequence: some expert gets none in a step
  one_key,     // 6 heads over 1 key head: for tp = 3 and 6
  dense,       // no experts: sequence parallelism may be off
  dense_tied,  // dense with tied embeddings
};

inline const char* model_name(Model model) {
  static constexpr const char* kNames[] = {"moe", "tied", "bias", "idle", "one_key", "dense", "dense_tied"};
  return kNames[static_cast<int>(model)];
}

struct Case {
  const char* layout;
  Model model = Model::moe;
  int64_t global_batch = 4;
  int64_t micro_batch = 1;
};

inline void PrintTo(const Case& c, std::ostream* os) {
  *os << c.layout << " " << model_name(c.model) << " batch " << c.global_batch << "/" << c.micro_batch;
}

// In a row of 4 (random_rows): one with a target everywhere, one with one target, one with none, one absent. Without dp
// each row is a micro-batch of its own, so gradients are accumulated over very different numbers of targets.
inline const std::vector<Case>& matrix() {
  using enum Model;
  static const std::vector<Case> cases = {
      // one axis
      {"tp=2"},
      {"tp=3", one_key},
      {"tp=4", bias},
      {"tp=6", one_key},
      {"tp=2,sp=off", dense},
      {"tp=4,sp=off", dense_tied},
      {"cp=2", bias},
      {"cp=3"},
      {"cp=4", tied},
      {"dp=2"},
      {"dp=3", idle, 6},
      {"dp=4", bias},
      {"dp=8", dense, 8},
      {"pp=2", tied},
      {"pp=3", bias},
      {"pp=4"},
      {"pp=5"},
      // uneven splits, stages without layers
      {"pp=2,split=1|4", bias},
      {"pp=3,split=1|3|1", tied},
      {"pp=8", tied},
      {"pp=3,split=2|0|3"},
      {"pp=4,split=0|3|2|0", dense_tied},
      {"dp=2,pp=3,split=0|5|0", bias},
      // experts over ep, their width over etp, on each axis of the dense grid
      {"dp=2,ep=2", bias},
      {"dp=3,ep=3", Model::moe, 6},
      {"dp=6,ep=6", idle, 6},
      {"cp=2,ep=2"},
      {"cp=3,ep=3", bias},
      {"tp=2,ep=2"},
      {"tp=3,ep=3", one_key},
      {"tp=6,ep=6", one_key},
      {"tp=2,etp=2", bias},
      {"cp=2,etp=2"},
      {"dp=2,etp=2"},
      {"dp=4,ep=2", bias},
      {"dp=4,etp=4"},
      {"dp=3,etp=3", idle, 6},
      {"cp=4,ep=2"},
      {"dp=4,ep=2,etp=2"},
      {"cp=3,dp=2,ep=3,etp=2", idle},
      {"tp=2,cp=2,ep=2,etp=2", bias},
      // two axes
      {"tp=2,cp=2"},
      {"tp=3,cp=2", one_key},
      {"tp=2,cp=2,sp=off", dense},
      {"tp=2,dp=2", tied},
      {"tp=4,dp=2", dense},
      {"tp=2,dp=2,sp=off", dense_tied},
      {"tp=2,pp=2"},
      {"tp=4,pp=3,split=1|3|1", tied},
      {"tp=2,pp=2,sp=off", dense},
      {"cp=2,dp=2", idle},
      {"cp=2,pp=2", bias},
      {"cp=3,pp=5", dense_tied},
      {"dp=2,pp=2", tied},
      {"dp=3,pp=4", bias, 6},
      // two rows a micro-batch
      {"dp=2", Model::moe, 8, 2},
      {"cp=2,pp=2,ep=2", tied, 4, 2},
      // three and four axes
      {"tp=2,pp=2,ep=2", bias},
      {"tp=2,pp=2,etp=2"},
      {"cp=2,pp=2,ep=2"},
      {"cp=2,pp=3,etp=2", idle},
      {"dp=2,pp=2,ep=2"},
      {"dp=2,pp=2,etp=2", bias},
      {"tp=2,cp=2,ep=2"},
      {"tp=2,cp=2,ep=4", idle},
      {"tp=2,dp=2,pp=2", dense},
      {"tp=2,cp=2,pp=2,sp=off", dense_tied},
      {"tp=2,dp=3,ep=3,etp=2", Model::moe, 6},
      {"cp=2,dp=2,pp=2,ep=2", tied},
      {"tp=4,pp=2,cp=2,ep=4,etp=2", idle},
      {"tp=4,dp=2,pp=2,ep=2,etp=2,split=2|3", bias},
      // five
      {"tp=2,pp=2,cp=2,dp=2,ep=2"},
      {"tp=2,pp=2,cp=2,dp=2,ep=4", idle},
      {"tp=2,pp=2,cp=2,dp=2,ep=2,etp=2", bias},
      {"tp=2,pp=2,cp=2,dp=2,ep=2,etp=4,split=1|4", tied},
      {"tp=2,pp=2,cp=2,dp=2,ep=4,etp=2,split=4|1", idle},
      {"tp=2,pp=2,cp=2,dp=2,ep=2,split=5|0", bias},
  };
  return cases;
}

inline topology::Layout layout_of(const char* text) {
  return or_throw(topology::complete_layout(or_throw(topology::parse_layout(text)), 0));
}

inline spec::RunSpec run_of(const Case& c) {
  const bool experts = c.model != Model::dense && c.model != Model::dense_tied;
  spec::RunSpec run = experts ? small_moe() : small_dense();
  auto& m = run.model;
  m.num_layers = 5;
  m.moe_layers = {experts, false, experts, experts, false};
  m.intermediate_size = 12;
  if (experts) m.num_experts = 6;
  m.tie_embeddings = c.model == Model::tied || c.model == Model::dense_tied;
  run.router.z_coef = 0.02;
  switch (c.model) {
    case Model::bias:
      m.router_bias = true;
      m.norm_topk_prob = false;
      run.router.balance = spec::Balance::bias;
      run.router.bias_rate = 0.01;
      break;
    case Model::idle:
      m.num_experts = 12;
      m.num_experts_per_tok = 1;
      m.norm_topk_prob = false;
      run.data.seq_length = 5;
      break;
    case Model::one_key:
      m.num_heads = 6;
      m.num_kv_heads = 1;
      break;
    default: break;
  }
  run.global_batch = c.global_batch;
  run.micro_batch = c.micro_batch;
  run.layout = layout_of(c.layout);
  return run;
}

// Below this gap between a token's last choice and the next one, fp32 may choose another expert than fp64.
constexpr double kSmallestGap = 1e-5;

inline spec::RunSpec with_precision(spec::RunSpec run, spec::Recipe recipe, uint64_t seed) {
  run.precision = recipe;
  run.seed = seed;
  return run;
}

// The run in fp64 with the first seed from run.seed on with which no token of the first step has two scores too close to
// call. Puts the seed into `run`.
inline LayoutRun run_with_drawn_seed(spec::RunSpec& run, int64_t steps) {
  for (;; ++run.seed) {
    LayoutRun result = run_layout(with_precision(run, spec::Recipe::fp64, run.seed), {.steps = steps});
    if (result.smallest_gap >= kSmallestGap) return result;
    std::printf("parity: seed %d gives a routing gap of %.1e, drawn again (%d layers, %d experts, batch %d)\n",
                static_cast<int>(run.seed), result.smallest_gap, run.model.num_layers,
                static_cast<int>(run.model.num_experts), static_cast<int>(run.global_batch));
  }
}

// The one-rank runs of a model and a batch, computed once a process.
struct Reference {
  uint64_t seed = 0;
  LayoutRun fp64;  // 20 steps
  LayoutRun fp32;  // one step
};

inline const Reference& reference(const Case& c) {
  static std::map<std::pair<Model, int64_t>, Reference> all;
  const auto [it, fresh] = all.try_emplace({c.model, c.global_batch});
  Reference& r = it->second;
  if (!fresh) return r;
  spec::RunSpec run = run_of({"tp=1", c.model, c.global_batch});
  r.fp64 = run_with_drawn_seed(run, 20);
  r.seed = run.seed;
  r.fp32 = run_layout(with_precision(run, spec::Recipe::fp32, r.seed), {.steps = 1});
  return r;
}

// Checks errors against bounds and keeps, for each quantity, the one that came nearest to its bound.
class Tally {
 public:
  void check(const std::string& quantity, double error, double bound, const std::string& where) {
    EXPECT_LE(error, bound) << quantity << " of " << where << ": error " << error << ", bound " << bound;
    Worst& worst = worst_[quantity];
    ++worst.count;
    if (error / bound < worst.ratio) return;
    worst = {error / bound, error, bound, worst.count, where};
  }

  // One line for each quantity, also as a property of the suite in the report.
  void print(const std::string& title) const {
    for (const auto& [quantity, w] : worst_) {
      std::printf("parity %s: %s: worst error/bound %.2g (%.2e of %.2e; %s), of %d\n", title.c_str(), quantity.c_str(),
                  w.ratio, w.error, w.bound, w.where.c_str(), w.count);
      testing::Test::RecordProperty("worst_" + quantity, std::to_string(w.ratio));
    }
  }

 private:
  struct Worst {
    double ratio = -1, error = 0, bound = 0;
    int count = 0;
    std::string where;
  };
  std::map<std::string, Worst> worst_;
};

}  // namespace penteract::parity
