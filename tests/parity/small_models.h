// Small models with odd sizes, for comparing layouts. fp64, so that only the mathematics can differ.
#pragma once

#include "penteract/spec/run_spec.h"

namespace penteract::parity {

// 4 layers, 4 query heads over 2 key heads, vocabulary 101 (no tp divides it), 8 experts of width 12, layer 1 dense.
inline spec::RunSpec small_moe() {
  spec::RunSpec run;
  run.seed = 7;
  run.family = "qwen3_moe";
  auto& m = run.model;
  m.family = run.family;
  m.num_layers = 4;
  m.hidden_size = 24;
  m.num_heads = 4;
  m.num_kv_heads = 2;
  m.head_dim = 6;
  m.vocab_size = 101;
  m.intermediate_size = 20;
  m.num_experts = 8;
  m.num_experts_per_tok = 2;
  m.moe_intermediate_size = 12;
  m.moe_layers = {true, false, true, true};
  m.qk_norm = true;
  m.rope_theta = 1e4;
  m.initializer_range = 0.2;
  run.precision = spec::Recipe::fp64;
  run.router.coef = 0.05;
  run.data.seq_length = 13;  // padded differently by different cp and tp
  run.global_batch = 4;
  run.micro_batch = 1;
  run.optimizer.lr = 1e-3;
  run.optimizer.min_lr = 1e-4;
  run.optimizer.warmup_steps = 2;
  run.optimizer.clip_grad_norm = 0.5;
  run.steps = 20;
  return run;
}

// The same without experts: sequence parallelism may be off.
inline spec::RunSpec small_dense() {
  spec::RunSpec run = small_moe();
  run.model.num_experts = run.model.num_experts_per_tok = run.model.moe_intermediate_size = 0;
  run.model.moe_layers.assign(run.model.num_layers, false);
  return run;
}

}  // namespace penteract::parity
