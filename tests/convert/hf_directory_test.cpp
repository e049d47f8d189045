// Hugging Face directories: what is read, and one message with file, tensor or key for what does not fit.
#include "penteract/convert/hf_directory.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "penteract/base/file.h"
#include "penteract/base/json.h"

namespace penteract::convert {
namespace {

namespace fs = std::filesystem;
const std::string kGolden = PENT_SOURCE_DIR "/tests/golden/hf/";

// A copy of a golden directory that a test may spoil.
class HfDirectoryTest : public testing::Test {
 protected:
  void TearDown() override { fs::remove_all(folder_); }

  void copy(const std::string& name) {
    fs::remove_all(folder_);
    fs::copy(kGolden + name, folder_);
  }
  Json config() { return or_throw(read_json(folder_ + "/config.json")); }
  void write(const std::string& name, const std::string& bytes) {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << bytes;
  }
  // Changes config.json and opens the directory.
  Result<std::unique_ptr<HfDirectory>> open_with(const std::function<void(Json&)>& change) {
    copy(current_);
    Json json = config();
    change(json);
    write("config.json", json.dump());
    return open();
  }
  Result<std::unique_ptr<HfDirectory>> open() {
    notes_.clear();
    return HfDirectory::open(folder_, &notes_);
  }
  // Rewrites model.safetensors with other tensors.
  void rewrite(const std::function<void(std::map<std::string, at::Tensor>&)>& change) {
    std::map<std::string, at::Tensor> tensors;
    {
      const auto file = or_throw(checkpoint::SafetensorsFile::open(folder_ + "/model.safetensors"));
      for (const auto& entry : file.tensors()) tensors[entry.name] = or_throw(file.read(entry));
    }
    change(tensors);
    std::vector<checkpoint::TensorSpec> specs;
    std::vector<at::Tensor> order;
    for (const int64_t bytes : {8, 4, 2}) {
      for (const auto& [name, tensor] : tensors) {
        if (tensor.element_size() != bytes) continue;
        specs.push_back({name, *checkpoint::dtype_of(tensor.scalar_type()), tensor.sizes().vec()});
        order.push_back(tensor.contiguous());
      }
    }
    auto writer = or_throw(checkpoint::SafetensorsWriter::create(folder_ + "/model.safetensors", specs, {}));
    for (const auto& tensor : order) ASSERT_TRUE(writer.append(tensor).ok());
    ASSERT_TRUE(writer.close().ok());
  }
  void expect_error(const Result<std::unique_ptr<HfDirectory>>& result, ErrorCode code, const std::string& part) {
    ASSERT_FALSE(result.ok()) << part;
    EXPECT_EQ(error_name(result.error().code), std::string(error_name(code))) << result.error().message();
    EXPECT_NE(result.error().message().find(part), std::string::npos) << result.error().message();
    EXPECT_NE(result.error().message().find(folder_), std::string::npos) << result.error().message();
    EXPECT_EQ(static_cast<int>(exit_code(result.error().code)), 3);
  }

  const std::string folder_ = (fs::temp_directory_path() / ("penteract-hf-" + std::to_string(::getpid()))).string();
  std::string current_ = "llama_tied";
  std::vector<std::string> notes_;
};

TEST_F(HfDirectoryTest, EveryGoldenDirectoryOpens) {
  for (const auto& entry : fs::directory_iterator(kGolden)) {
    const auto directory = HfDirectory::open(entry.path().string(), &notes_);
    EXPECT_TRUE(directory.ok()) << directory.error().message();
  }
  EXPECT_TRUE(notes_.empty());
}

// One wavelength each in the plain, the blended and the stretched part.
TEST_F(HfDirectoryTest, RopeScalingInBothSpellings) {
  const auto model = or_throw(open_with([](Json&) {}))->model();
  EXPECT_EQ(model.llama3_rope, (spec::Llama3Rope{8, 1, 4, 32}));
  EXPECT_EQ(model.rope_theta, 1e4);
  const auto old_spelling = [](const char* type_key) {
    return [=](Json& json) {
      Json scaling = json["rope_parameters"];
      json.erase("rope_parameters");
      json["rope_theta"] = scaling["rope_theta"];
      scaling.erase("rope_theta");
      scaling.erase("rope_type");
      scaling[type_key] = "llama3";
      json["rope_scaling"] = scaling;
    };
  };
  for (const char* key : {"rope_type", "type"}) EXPECT_EQ(or_throw(open_with(old_spelling(key)))->model(), model);
  const auto both = [](Json& json) {
    json["rope_scaling"] = json["rope_parameters"];
    json["rope_theta"] = 1e4;
  };
  EXPECT_EQ(or_throw(open_with(both))->model(), model);
}

TEST_F(HfDirectoryTest, ConfigsThatDoNotFit) {
  using Change = std::function<void(Json&)>;
  const std::vector<std::pair<Change, std::string>> cases = {
      {[](Json& j) { j["rope_theta"] = 5e5; }, "rope_theta"},
      {[](Json& j) { j.erase("rope_parameters"); }, "rope_theta"},
      {[](Json& j) { j["rope_parameters"].erase("rope_theta"); }, "rope_theta"},
      {[](Json& j) { j["rope_parameters"]["rope_type"] = "yarn"; }, "rope_type"},
      {[](Json& j) { j["rope_parameters"]["type"] = "default"; }, "rope_type"},
      {[](Json& j) { j["rope_parameters"]["beta_fast"] = 32; }, "beta_fast"},
      {[](Json& j) { j["rope_parameters"].erase("factor"); }, "factor"},
      {[](Json& j) { j["rope_parameters"] = "llama3"; }, "rope_parameters"},
      {[](Json& j) {
         j["rope_scaling"] = j["rope_parameters"];
         j["rope_scaling"]["factor"] = 9;
       },
       "rope_scaling"},
      {[](Json& j) { j["rope_parameters"]["high_freq_factor"] = 1; }, "high_freq_factor"},
      {[](Json& j) { j["rope_parameters"]["partial_rotary_factor"] = 0.5; }, "partial_rotary_factor"},
      {[](Json& j) { j["attention_bias"] = true; }, "attention_bias"},
      {[](Json& j) { j["mlp_bias"] = true; }, "mlp_bias"},
      {[](Json& j) { j["hidden_act"] = "gelu"; }, "hidden_act"},
      {[](Json& j) { j["model_type"] = "mistral"; }, "mistral"},
      {[](Json& j) { j.erase("model_type"); }, "model_type"},
      {[](Json& j) { j["quantization_config"] = Json::object(); }, "quantization_config"},
      {[](Json& j) { j["hidden_sise"] = 24; }, "hidden_size"},
      {[](Json& j) { j["hidden_size"] = -24; }, "hidden_size"},
      {[](Json& j) { j["hidden_size"] = 1e300; }, "hidden_size"},
      {[](Json& j) { j["num_key_value_heads"] = 3; }, "num_key_value_heads"},
      {[](Json& j) { j["layer_types"] = {"sliding_attention"}; }, "layer_types"},
      {[](Json& j) { j.erase("vocab_size"); }, "vocab_size"},
  };
  for (const auto& [change, part] : cases) expect_error(open_with(change), ErrorCode::hf_config, part);
  current_ = "qwen3_moe";
  expect_error(open_with([](Json& j) { j["num_experts"] = 5; }), ErrorCode::hf_config, "num_local_experts");
  expect_error(open_with([](Json& j) { j.erase("num_local_experts"); }), ErrorCode::hf_config, "num_experts");
}

TEST_F(HfDirectoryTest, TheNewNameOfTheExpertCountIsTheOldOne) {
  current_ = "qwen3_moe";
  const auto model = or_throw(open_with([](Json&) {}))->model();
  const auto renamed = [](Json& j) {
    j["num_experts"] = j["num_local_experts"];
    j.erase("num_local_experts");
  };
  EXPECT_EQ(or_throw(open_with(renamed))->model(), model);
}

TEST_F(HfDirectoryTest, TensorsThatDoNotFitAreListed) {
  const std::string gate = "model.layers.0.mlp.gate_proj.weight";
  copy("qwen3");
  rewrite([&](auto& t) { t.erase(gate); });
  expect_error(open(), ErrorCode::hf_tensors, "missing: " + gate);
  copy("qwen3");
  rewrite([&](auto& t) { t["model.layers.9.mlp.gate_proj.weight"] = t[gate]; });
  expect_error(open(), ErrorCode::hf_tensors, "not of this model: model.layers.9.mlp.gate_proj.weight");
  copy("qwen3");
  rewrite([&](auto& t) { t[gate] = t[gate].t(); });
  expect_error(open(), ErrorCode::hf_tensors, gate + " is [24, 20], expected [20, 24]");
  copy("qwen3");
  rewrite([&](auto& t) { t[gate] = t[gate].to(at::kLong); });
  expect_error(open(), ErrorCode::hf_tensors, gate + " is I64");
}

TEST_F(HfDirectoryTest, WhatFollowsFromTheModelIsDroppedByName) {
  copy("llama_tied");
  rewrite([](auto& t) {
    t["lm_head.weight"] = t["model.embed_tokens.weight"].clone();
    t["model.layers.0.self_attn.rotary_emb.inv_freq"] = at::zeros({8});
  });
  EXPECT_TRUE(open().ok());
  EXPECT_EQ(notes_.size(), 2u);
  rewrite([](auto& t) { t["lm_head.weight"][0][0] += 1; });
  expect_error(open(), ErrorCode::hf_tensors, "not of this model: lm_head.weight");
}

TEST_F(HfDirectoryTest, FilesThatAreMissingOrNotMeant) {
  copy("qwen3");
  fs::remove(folder_ + "/model.safetensors");
  expect_error(open(), ErrorCode::hf_tensors, "model.safetensors");
  write("pytorch_model.bin", "pickle");
  expect_error(open(), ErrorCode::hf_tensors, "pytorch_model.bin");
  copy("qwen3_moe_nonorm");
  fs::remove(folder_ + "/model-00002-of-00004.safetensors");
  expect_error(open(), ErrorCode::file_missing, "model-00002-of-00004.safetensors");
  for (const char* file : {"../model.safetensors", "/etc/passwd", "", "a/b.safetensors"}) {
    copy("qwen3_moe_nonorm");
    Json index = or_throw(read_json(folder_ + "/model.safetensors.index.json"));
    index["weight_map"]["lm_head.weight"] = file;
    write("model.safetensors.index.json", index.dump());
    expect_error(open(), ErrorCode::hf_tensors, "lm_head.weight");
  }
  for (const char* text : {"[]", "{}", "{\"weight_map\": 3}"}) {
    copy("qwen3_moe_nonorm");
    write("model.safetensors.index.json", text);
    expect_error(open(), ErrorCode::hf_tensors, "weight_map");
  }
  copy("qwen3_moe_nonorm");
  Json index = or_throw(read_json(folder_ + "/model.safetensors.index.json"));
  index["weight_map"].erase("lm_head.weight");
  write("model.safetensors.index.json", index.dump());
  expect_error(open(), ErrorCode::hf_tensors, "lm_head.weight");
  index["weight_map"]["ghost.weight"] = "model-00001-of-00004.safetensors";
  write("model.safetensors.index.json", index.dump());
  EXPECT_FALSE(open().ok());
  copy("qwen3");
  fs::resize_file(folder_ + "/model.safetensors", 5000);
  expect_error(open(), ErrorCode::file_malformed, "model.safetensors");
  copy("qwen3");
  write("config.json", "{");
  expect_error(open(), ErrorCode::file_malformed, "config.json");
}

// Slices of experts come from several tensors; every slice holds the elements of the whole.
TEST_F(HfDirectoryTest, SlicesOfExpertsAreThoseOfTheWhole) {
  copy("qwen3_moe");
  const auto directory = or_throw(open());
  const std::string name = "model.layers.0.mlp.experts.gate_proj.weight";
  const at::Tensor whole = at::empty({6, 10, 24});
  ASSERT_TRUE(directory->read(name, topology::Slice::whole({6, 10, 24}), whole).ok());
  const auto file = or_throw(checkpoint::SafetensorsFile::open(folder_ + "/model.safetensors"));
  for (int e = 0; e < 6; ++e) {
    const auto* entry = file.find("model.layers.0.mlp.experts." + std::to_string(e) + ".gate_proj.weight");
    ASSERT_NE(entry, nullptr);
    EXPECT_TRUE(whole[e].equal(or_throw(file.read(*entry))));
  }
  const topology::Slice slice{{1, 3, 5}, {4, 6, 11}};
  const at::Tensor part = at::empty({4, 6, 11}, at::kDouble);
  ASSERT_TRUE(directory->read(name, slice, part).ok());
  EXPECT_TRUE(part.equal(whole.narrow(0, 1, 4).narrow(1, 3, 6).narrow(2, 5, 11).to(at::kDouble)));
}

}  // namespace
}  // namespace penteract::convert
