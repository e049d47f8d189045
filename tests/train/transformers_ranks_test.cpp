// The decoder against Hugging Face Transformers: loss and every gradient of a tiny Qwen3-MoE with random weights, on one
// rank and over every axis. The file is made by tests/golden/make_transformers_golden.py.
#include <ATen/ops/norm.h>
#include <gtest/gtest.h>

#include <cmath>

#include "parity/layout_run.h"
#include "penteract/base/check.h"
#include "penteract/checkpoint/safetensors.h"
#include "penteract/model/engine.h"

namespace penteract::train {
namespace {

spec::RunSpec golden_run(const char* layout) {
  spec::RunSpec run;
  auto& m = run.model;
  m.num_layers = 3, m.hidden_size = 16, m.num_heads = 4, m.num_kv_heads = 2, m.head_dim = 8, m.vocab_size = 61;
  m.intermediate_size = 24, m.num_experts = 4, m.num_experts_per_tok = 2, m.moe_intermediate_size = 8;
  m.moe_layers = {true, false, true};
  m.qk_norm = true, m.rope_theta = 1e4, m.norm_eps = 1e-6;
  run.precision = spec::Recipe::fp64;
  run.router.balance = spec::Balance::none;
  run.data.seq_length = 13;
  run.global_batch = 4;  // the fourth row is empty
  run.layout = or_throw(topology::complete_layout(or_throw(topology::parse_layout(layout)), 0));
  return run;
}

class TransformersRanks : public testing::TestWithParam<const char*> {};

TEST_P(TransformersRanks, LossAndGradientsAgree) {
  const auto run = golden_run(GetParam());
  const auto file =
      checkpoint::SafetensorsFile::open(PENT_SOURCE_DIR "/tests/golden/transformers/qwen3_moe.safetensors");
  ASSERT_TRUE(file.ok()) << file.error().message();
  auto golden = [&](const std::string& name) {
    const auto* entry = file->find(name);
    EXPECT_NE(entry, nullptr) << name;
    return or_throw(file->read(*entry));
  };
  const at::Tensor tokens = golden("tokens");
  const auto table = spec::param_table(run.model);
  parity::Gatherer grads(table);
  double loss = 0, norm = 0;
  const Status status = comm::run_rank_threads(run.layout.num_ranks(), {}, [&](comm::RankContext& context) -> Status {
    model::Engine engine(context, run, parallel::Holding::training);
    for (auto& buffer : engine.store().buffers()) {
      for (const auto& piece : engine.store().owned_pieces(buffer)) {
        const auto* entry = file->find("weight." + table[piece.param].name);
        PENT_CHECK(entry != nullptr, "{}", table[piece.param].name);
        PENT_TRY(file->read(*entry, piece.slice, buffer.master.narrow(0, piece.shard_first, piece.count)));
      }
    }
    engine.store().publish_weights();
    const auto result = engine.forward_backward([&](int64_t row, model::Row& out) {
      if (row >= tokens.size(0)) return false;
      for (int64_t i = 0; i < tokens.size(1); ++i) out.tokens[i] = static_cast<int32_t>(tokens[row][i].item<int64_t>());
      return true;
    });
    grads.add(engine.store(), [](parallel::FlatBuffer& b) { return b.grad_shard(); });
    if (context.rank == 0) loss = result.loss, norm = result.grad_norm;
    return {};
  });
  ASSERT_TRUE(status.ok()) << status.error().message();
  // Transformers keeps softmax and norms in fp32 inside a double model: 2^-24 times the depth of a few dozen operations.
  EXPECT_NEAR(loss, golden("loss").item<double>(), 1e-5);
  double sum = 0;
  for (const auto& [name, grad] : grads.take()) {
    const at::Tensor expected = golden("grad." + name).to(at::kDouble);
    sum += std::pow(at::norm(expected).item<double>(), 2);
    EXPECT_GT(at::norm(expected).item<double>(), 0) << name;
    EXPECT_LT(parity::relative_error(grad, expected, 1e-6 * norm), 1e-4) << name;
  }
  EXPECT_NEAR(norm, std::sqrt(sum), 1e-4 * norm);
}

INSTANTIATE_TEST_SUITE_P(Layouts, TransformersRanks,
                         testing::Values("tp=1", "tp=2,pp=2,cp=2,dp=2,ep=4", "tp=4,pp=3,ep=2,etp=2"));

}  // namespace
}  // namespace penteract::train
