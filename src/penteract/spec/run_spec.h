// A recipe as typed values: every default written out. Loaded by spec/recipe.h; interface.md lists the keys.
// Thread-safety: value types.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "penteract/spec/model_spec.h"
#include "penteract/topology/layout.h"

namespace penteract::spec {

enum class Recipe : uint8_t { fp64, fp32, bf16 };
enum class Balance : uint8_t { none, sequence, bias };
enum class LrSchedule : uint8_t { constant, linear, cosine, wsd };

std::string recipe_name(Recipe recipe);
std::string balance_name(Balance balance);
std::string lr_schedule_name(LrSchedule schedule);

struct DataSource {
  std::string path;
  std::optional<double> weight;  // given: the sources are a blend, not one stream
  bool operator==(const DataSource&) const = default;
};

struct RouterSpec {
  Balance balance = Balance::sequence;
  double coef = 1e-3;       // of the sequence rule
  double bias_rate = 1e-3;  // of the bias rule
  double z_coef = 0;
};

struct DataSpec {
  std::string task = "pretrain";
  std::string tokenizer_path;
  std::string tokenizer_kind;  // "" = what the file says
  std::string eod;             // "" = the rule of interface.md
  std::vector<DataSource> train;
  std::vector<std::string> valid, test;
  int64_t seq_length = 0;
};

struct OptimizerSpec {
  double lr = 0, min_lr = 0;
  int64_t warmup_steps = 0;
  LrSchedule schedule = LrSchedule::cosine;
  double beta1 = 0.9, beta2 = 0.95, eps = 1e-8, weight_decay = 0.1, clip_grad_norm = 1.0;
};

struct CheckpointSpec {
  int64_t every = 0;  // 0 = only at the end
  int keep = 2;       // 0 = all
  std::string on_error = "continue";
};

struct RunSpec {
  std::string dir;
  uint64_t seed = 1234;
  int ranks = 1;
  int threads = 0;  // intra-op threads a rank; 0 = max(1, cores ÷ ranks)
  std::string family;
  ModelSpec model;
  topology::Layout layout;
  RouterSpec router;
  Recipe precision = Recipe::bf16;
  DataSpec data;
  int64_t global_batch = 0, micro_batch = 1;  // sequences
  OptimizerSpec optimizer;
  int64_t steps = 0;
  int64_t max_skipped_steps = 10;
  bool deterministic = true;
  double comm_deadline_s = 600;
  int64_t eval_every = 0;
  int64_t eval_steps = 2;  // global batches; 0 = all
  CheckpointSpec checkpoint;
};

}  // namespace penteract::spec
