// penteract probe from outside: checkpoints and Hugging Face directories, layouts, precisions, routes, bad input.
#include <ATen/ops/norm.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "cli/program.h"
#include "penteract/base/json.h"
#include "penteract/checkpoint/safetensors.h"

namespace penteract::cli {
namespace {

const std::string kHf = PENT_SOURCE_DIR "/tests/golden/hf/qwen3_moe";
const std::string kIds = kHf + "/ids.safetensors";

std::map<std::string, at::Tensor> tensors_of(const std::string& path) {
  std::map<std::string, at::Tensor> tensors;
  const auto file = or_throw(checkpoint::SafetensorsFile::open(path));
  for (const auto& entry : file.tensors()) tensors[entry.name] = or_throw(file.read(entry));
  return tensors;
}

double relative_error(const at::Tensor& a, const at::Tensor& b) {
  const double size = at::norm(b.to(at::kDouble)).item<double>();
  return at::norm(a.to(at::kDouble) - b.to(at::kDouble)).item<double>() / (size == 0 ? 1 : size);
}

Ended probe(const SmallRun& run, const std::string& model, const std::string& out, std::vector<std::string> more = {},
            const std::string& ids = kIds) {
  std::vector<std::string> args = {"probe", model, "--ids", ids, "--out", run.path(out)};
  args.insert(args.end(), more.begin(), more.end());
  return run_program(args);
}

// Every layout writes the same file within the bounds of docs/design/exactness.md: names, shapes, values.
TEST(ProbeProcs, LayoutsWriteTheSameTensors) {
  const SmallRun run;
  ASSERT_EQ(probe(run, kHf, "one", {"--gradients", "--precision", "fp64"}).code, 0);
  const auto one = tensors_of(run.path("one"));
  EXPECT_EQ(one.at("logits").scalar_type(), at::kDouble);
  for (const char* layout : {"tp=2,pp=3,cp=2,ep=2", "dp=2,ep=2", "tp=4,etp=2,ep=2"}) {
    const Ended ended = probe(run, kHf, "many", {"--gradients", "--precision", "fp64", "--layout", layout});
    ASSERT_EQ(ended.code, 0) << ended.err;
    const auto many = tensors_of(run.path("many"));
    ASSERT_EQ(many.size(), one.size());
    for (const auto& [name, value] : one) {
      ASSERT_EQ(many.at(name).sizes(), value.sizes()) << name;
      EXPECT_LT(relative_error(many.at(name), value), 1e-10) << layout << " " << name;
    }
  }
}

// bf16 takes other experts than fp32 where scores are close; with fp32's routes it takes fp32's.
TEST(ProbeProcs, RoutesAreRecordedAndReplayed) {
  const SmallRun run;
  ASSERT_EQ(probe(run, kHf, "fp32", {"--precision", "fp32", "--record-routes", run.path("routes")}).code, 0);
  const Ended replayed = probe(run, kHf, "bf16",
                               {"--precision", "bf16", "--layout", "tp=2,cp=2,ep=2", "--replay-routes",
                                run.path("routes"), "--record-routes", run.path("again")});
  ASSERT_EQ(replayed.code, 0) << replayed.err;
  const auto routes = tensors_of(run.path("routes")), again = tensors_of(run.path("again"));
  ASSERT_EQ(routes.size(), 2u);
  for (const auto& [name, experts] : routes) EXPECT_TRUE(again.at(name).equal(experts)) << name;
  EXPECT_LT(relative_error(tensors_of(run.path("bf16")).at("logits"), tensors_of(run.path("fp32")).at("logits")), 0.03);
}

TEST(ProbeProcs, ACheckpointOnItsLayoutAndOnOneRank) {
  const SmallRun run;
  ASSERT_EQ(run.train({"train.steps=2"}).code, 0);
  const std::vector<std::string> fp64 = {"--gradients", "--precision", "fp64"};
  auto with_layout = fp64;
  with_layout.insert(with_layout.end(), {"--layout", "tp=2,pp=2,ep=2"});
  const Ended one = probe(run, run.path("run"), "one", fp64), many = probe(run, run.path("run"), "many", with_layout);
  ASSERT_EQ(one.code, 0) << one.err;
  ASSERT_EQ(many.code, 0) << many.err;
  EXPECT_NE(many.err.find("on 4 ranks: tp=2,pp=2"), std::string::npos) << many.err;
  const auto a = tensors_of(run.path("one")), b = tensors_of(run.path("many"));
  ASSERT_EQ(a.size(), b.size());
  EXPECT_TRUE(a.count("grad.model.layers.1.mlp.experts.3.down_proj.weight"));
  for (const auto& [name, value] : a) EXPECT_LT(relative_error(b.at(name), value), 1e-10) << name;
  // The step itself, and its loss as JSON.
  const Ended json = probe(run, run.path("run/checkpoints/step-00000002"), "json", {"--json", "--precision", "fp64"});
  ASSERT_EQ(json.code, 0) << json.err;
  EXPECT_EQ((*parse_json(json.out, "stdout"))["loss"].get<double>(), a.at("loss").item<double>());
}

TEST(ProbeProcs, BadInputIsOneMessage) {
  const SmallRun run;
  run.write("text", "not a safetensors file");
  std::filesystem::create_directories(run.path("empty"));
  const struct {
    std::string model, ids;
    std::vector<std::string> more;
    int code;
    std::string part;
  } cases[] = {
      {run.path("none"), kIds, {}, 3, "does not exist"},
      {run.path("empty"), kIds, {}, 3, "empty"},
      {kHf, run.path("none"), {}, 3, "none"},
      {kHf, run.path("text"), {}, 3, "text"},
      {kHf, kHf + "/expected.safetensors", {}, 3, "not known"},
      {kHf, kIds, {"--layout", "tp=3"}, 4, "num_attention_heads"},
      {kHf, kIds, {"--layout", "ep=5,dp=5"}, 4, "num_experts"},
      {kHf, kIds, {"--layout", "tp=2,sp=off"}, 4, "sequence parallelism"},
      {kHf, kIds, {"--layout", "tp=2", "--ranks", "3"}, 4, "3"},
      {kHf, kIds, {"--precision", "fp8"}, 2, "fp8"},
      {kHf, kIds, {"--precision", "mxfp8"}, 2, "not supported"},
      {kHf, kIds, {"--set", "batch.global=7"}, 2, "batch.global"},
      {kHf, kIds, {"--set", "model.hidden_size=7"}, 2, "model.hidden_size"},
      {kHf, kIds, {"--replay-routes", kIds}, 3, "routes.0"},
      {PENT_SOURCE_DIR "/tests/golden/hf/qwen3", kIds, {"--record-routes", run.path("r")}, 2, "no experts"},
      {PENT_SOURCE_DIR "/tests/golden/hf/qwen3", kIds, {"--replay-routes", kIds}, 3, "routes"},
  };
  for (const auto& c : cases) {
    const Ended ended = probe(run, c.model, "out", c.more, c.ids);
    EXPECT_EQ(ended.code, c.code) << c.part << ": " << ended.err;
    EXPECT_NE(ended.err.find(c.part), std::string::npos) << ended.err;
    EXPECT_FALSE(std::filesystem::exists(run.path("out"))) << c.part;
  }
  EXPECT_EQ(probe(run, kHf, "no/such/folder/out").code, 8);
}

}  // namespace
}  // namespace penteract::cli
