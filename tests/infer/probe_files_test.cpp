// The files of a probe: what is read, and one message for what does not fit.
#include "penteract/infer/probe_files.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "penteract/checkpoint/safetensors.h"

namespace penteract::infer {
namespace {

namespace fs = std::filesystem;

class ProbeFiles : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }
  std::string write(std::vector<std::pair<std::string, at::Tensor>> tensors) {
    std::stable_sort(tensors.begin(), tensors.end(),
                     [](const auto& a, const auto& b) { return a.second.element_size() > b.second.element_size(); });
    std::vector<checkpoint::TensorSpec> specs;
    for (const auto& [name, t] : tensors)
      specs.push_back({name, *checkpoint::dtype_of(t.scalar_type()), t.sizes().vec()});
    auto writer = or_throw(checkpoint::SafetensorsWriter::create(path_, specs, {}));
    for (const auto& [name, t] : tensors) EXPECT_TRUE(writer.append(t.contiguous()).ok());
    EXPECT_TRUE(writer.close().ok());
    return path_;
  }
  const std::string folder_ = (fs::temp_directory_path() / ("penteract-probe-" + std::to_string(::getpid()))).string();
  const std::string path_ = folder_ + "/f.safetensors";
};

TEST_F(ProbeFiles, TheFirstTokenOfARowIsNeverATarget) {
  const at::Tensor ids = at::arange(6, at::kLong).view({2, 3});
  EXPECT_TRUE(or_throw(read_probe_input(write({{"ids", ids}}), 6))
                  .is_target.equal(at::tensor({0, 1, 1, 0, 1, 1}).view({2, 3}).to(at::kBool)));
  for (const auto dtype : {at::kLong, at::kInt, at::kByte, at::kBool}) {
    const at::Tensor mask = at::tensor({1, 0, 1, 1, 0, 0}).view({2, 3}).to(dtype);
    const auto input = or_throw(read_probe_input(write({{"ids", ids}, {"loss_mask", mask}}), 6));
    EXPECT_TRUE(input.is_target.equal(at::tensor({0, 0, 1, 0, 0, 0}).view({2, 3}).to(at::kBool))) << dtype;
  }
}

TEST_F(ProbeFiles, InputsThatDoNotFit) {
  const at::Tensor ids = at::arange(6, at::kLong).view({2, 3}), mask = at::ones({2, 3}, at::kLong);
  const std::vector<std::pair<std::vector<std::pair<std::string, at::Tensor>>, std::string>> cases = {
      {{{"loss_mask", mask}}, "ids"},
      {{{"ids", ids.to(at::kFloat)}}, "ids"},
      {{{"ids", ids.view({6})}}, "[batch, seq]"},
      {{{"ids", at::zeros({0, 3}, at::kLong)}}, "ids"},
      {{{"ids", at::zeros({2, 0}, at::kLong)}}, "ids"},
      {{{"ids", ids + 1}}, "row 1, position 2"},
      {{{"ids", ids - 1}}, "row 0, position 0"},
      {{{"ids", at::full({1, 1}, int64_t{1} << 40, at::kLong)}}, "vocabulary"},
      {{{"ids", ids}, {"loss_mask", at::ones({2, 2}, at::kLong)}}, "loss_mask"},
      {{{"ids", ids}, {"loss_mask", mask * 2}}, "loss_mask"},
      {{{"ids", ids}, {"loss_mask", mask.to(at::kFloat)}}, "loss_mask"},
      {{{"ids", ids}, {"labels", ids}}, "labels"},
  };
  for (const auto& [tensors, part] : cases) {
    const auto input = read_probe_input(write(tensors), 6);
    ASSERT_FALSE(input.ok()) << part;
    EXPECT_EQ(input.error().code, ErrorCode::probe_input) << input.error().message();
    EXPECT_NE(input.error().message().find(part), std::string::npos) << input.error().message();
  }
  EXPECT_EQ(read_probe_input(folder_ + "/none", 6).error().code, ErrorCode::file_missing);
}

TEST_F(ProbeFiles, RoutesComeBackAndOthersAreRefused) {
  spec::ModelSpec model;
  model.num_layers = 3, model.num_experts = 4, model.num_experts_per_tok = 2;
  model.moe_layers = {true, false, true};
  const at::Tensor good = at::tensor({0, 1, 3, 2, 1, 0}).view({1, 3, 2}).to(at::kLong);
  ASSERT_TRUE(write_routes(path_, {{0, good}, {2, good + 0}}).ok());
  const auto back = or_throw(read_routes(path_, model, 1, 3));
  ASSERT_EQ(back.size(), 2u);
  EXPECT_TRUE(back.at(2).equal(good));
  const std::vector<std::pair<std::vector<std::pair<std::string, at::Tensor>>, std::string>> cases = {
      {{{"routes.0", good}}, "routes.2"},
      {{{"routes.0", good}, {"routes.2", good}, {"routes.1", good}}, "routes.1"},
      {{{"routes.0", good}, {"routes.2", good + 1}}, "expert 4"},
      {{{"routes.0", good}, {"routes.2", good - 1}}, "expert -1"},
      {{{"routes.0", good}, {"routes.2", good * 0}}, "twice"},
      {{{"routes.0", good}, {"routes.2", good.view({3, 1, 2})}}, "expected [1, 3, 2]"},
      {{{"routes.0", good}, {"routes.2", good.to(at::kFloat)}}, "whole numbers"},
  };
  for (const auto& [tensors, part] : cases) {
    const auto routes = read_routes(write(tensors), model, 1, 3);
    ASSERT_FALSE(routes.ok()) << part;
    EXPECT_NE(routes.error().message().find(part), std::string::npos) << routes.error().message();
  }
  model.moe_layers.assign(3, false);
  EXPECT_FALSE(read_routes(write({{"x", good}}), model, 1, 3).ok());
}

TEST_F(ProbeFiles, AnOutputReplacesTheFileAndLeavesNothingBeside) {
  ProbeOutput output;
  output.logits = at::ones({1, 2, 3});
  output.loss = 0.5;
  output.grads["a.weight"] = at::ones({2});
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(write_probe_output(path_, output, false).ok());
  const auto file = or_throw(checkpoint::SafetensorsFile::open(path_));
  EXPECT_EQ(file.tensors().size(), 3u);
  EXPECT_EQ(or_throw(file.read(*file.find("loss"))).item<float>(), 0.5F);
  EXPECT_TRUE(file.find("loss")->shape.empty());
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
  EXPECT_FALSE(write_probe_output(folder_ + "/none/x", output, false).ok());
}

}  // namespace
}  // namespace penteract::infer
