// Llama, Qwen3 and Qwen3-MoE against Hugging Face Transformers: logits, loss, every gradient and every chosen expert of
// tiny models whose every weight is random, on one rank and over every axis (tests/golden/make_hf_golden.py).
#include <ATen/ops/norm.h>
#include <gtest/gtest.h>

#include <cmath>

#include "penteract/checkpoint/safetensors.h"
#include "penteract/convert/hf_directory.h"
#include "penteract/infer/probe.h"
#include "penteract/infer/probe_files.h"

namespace penteract::infer {
namespace {

const std::string kGolden = PENT_SOURCE_DIR "/tests/golden/hf/";

// The worst elements over all cases, printed at the end of the suite.
struct Worst {
  double logits = 0, loss = 0, grad = 0;
};

class TransformersRanks : public testing::TestWithParam<std::tuple<const char*, const char*>> {
 protected:
  static Worst worst_;
  static void TearDownTestSuite() {
    fmt::print("worst against Transformers: logits {:.1e}, loss {:.1e}, gradients {:.1e} (relative)\n", worst_.logits,
               worst_.loss, worst_.grad);
  }
};
Worst TransformersRanks::worst_;

double norm_of(const at::Tensor& t) { return at::norm(t.to(at::kDouble)).item<double>(); }

TEST_P(TransformersRanks, LogitsLossGradientsAndRoutesAgree) {
  const auto& [name, layout_text] = GetParam();
  const std::string folder = kGolden + name;
  std::vector<std::string> notes;
  const auto source = or_throw(convert::HfDirectory::open(folder, &notes));
  EXPECT_TRUE(notes.empty());
  spec::RunSpec run;
  run.model = source->model();
  run.precision = spec::Recipe::fp32;
  run.layout = or_throw(topology::complete_layout(or_throw(topology::parse_layout(layout_text)), 0));
  const auto input = or_throw(read_probe_input(folder + "/ids.safetensors", run.model.vocab_size));
  ProbeOptions options;
  options.gradients = true;
  options.record_routes = run.model.has_experts();
  const auto probed = probe(run, {}, *source, source->tensors(), input, options);
  ASSERT_TRUE(probed.ok()) << probed.error().message();

  const auto file = or_throw(checkpoint::SafetensorsFile::open(folder + "/expected.safetensors"));
  size_t compared = 0;
  double square_sum = 0, expected_square_sum = 0;
  for (const auto& entry : file.tensors()) {
    const at::Tensor expected = or_throw(file.read(entry));
    ++compared;
    if (entry.name == "logits") {
      const double error = (probed->logits - expected).abs().max().item<double>();
      EXPECT_LT(error, 1e-4);
      worst_.logits = std::max(worst_.logits, error);
    } else if (entry.name == "loss") {
      const double error = std::abs(probed->loss - expected.item<double>());
      EXPECT_LT(error, 1e-5);
      worst_.loss = std::max(worst_.loss, error);
    } else if (entry.name.starts_with("routes.")) {
      EXPECT_TRUE(probed->routes.at(std::stoi(entry.name.substr(7))).equal(expected)) << entry.name;
    } else {
      ASSERT_TRUE(entry.name.starts_with("grad."));
      const at::Tensor grad = probed->grads.at(entry.name.substr(5));
      ASSERT_EQ(grad.sizes(), expected.sizes()) << entry.name;
      const double size = norm_of(expected), error = norm_of(grad - expected);
      // An expert without tokens has a gradient of exactly zero.
      if (size == 0) {
        EXPECT_EQ(error, 0) << entry.name;
        continue;
      }
      EXPECT_LT(error, 1e-4 * size) << entry.name;
      worst_.grad = std::max(worst_.grad, error / size);
      square_sum += std::pow(norm_of(grad), 2);
      expected_square_sum += size * size;
    }
  }
  EXPECT_EQ(compared, 2 + probed->grads.size() + probed->routes.size());
  EXPECT_NEAR(std::sqrt(square_sum), std::sqrt(expected_square_sum), 1e-4 * std::sqrt(expected_square_sum));
}

INSTANTIATE_TEST_SUITE_P(Dense, TransformersRanks,
                         testing::Combine(testing::Values("llama_tied", "llama_untied", "qwen3", "qwen3_tied"),
                                          testing::Values("tp=1", "tp=4", "tp=2,pp=3,cp=2,dp=2", "tp=2,pp=2,sp=off")));
INSTANTIATE_TEST_SUITE_P(Experts, TransformersRanks,
                         testing::Combine(testing::Values("qwen3_moe", "qwen3_moe_nonorm"),
                                          testing::Values("tp=1", "tp=2,pp=2,cp=2,dp=2,ep=2,etp=2", "dp=4,ep=2",
                                                          "tp=4,pp=3,ep=2,etp=2")));

}  // namespace
}  // namespace penteract::infer
