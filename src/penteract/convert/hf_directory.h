// A Hugging Face directory as a source of weights: config.json and safetensors, one file or several with an index.
// Nothing that the directory brings is executed; pickle and GGUF are refused.
// Thread-safety: an open HfDirectory may be read from several threads.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "penteract/checkpoint/safetensors.h"
#include "penteract/checkpoint/weight_source.h"
#include "penteract/families/weight_rules.h"
#include "penteract/spec/model_spec.h"

namespace penteract::convert {

// True where the folder holds a config.json.
bool is_hf_directory(const std::string& path);

class HfDirectory : public checkpoint::WeightSource {
 public:
  // Reads the config, the index and the header of every safetensors file, and compares the tensors with those that the
  // family expects: each is there once, in its shape and a floating dtype, and no other is. A copy of a tied embedding
  // and rotary inv_freq buffers are dropped, and named in `notes`.
  // Errors: hf_config (what config.json says), hf_tensors (the differences), file_*.
  static Result<std::unique_ptr<HfDirectory>> open(const std::string& path, std::vector<std::string>* notes);

  const spec::ModelSpec& model() const { return model_; }
  // Every tensor that the family expects, with the slice of the parameter that it is.
  const std::vector<families::HfTensor>& tensors() const { return tensors_; }

  Status check(const std::vector<spec::Param>& table) const override;
  Status read(const std::string& param, const topology::Slice& slice, const at::Tensor& out) const override;

 private:
  struct Place {
    size_t file = 0;
    const checkpoint::TensorEntry* entry = nullptr;
  };
  explicit HfDirectory(std::string path) : path_(std::move(path)) {}
  Status read_config();
  Status open_files();
  Status compare(std::vector<std::string>* notes);
  // True where both hold the same values.
  Result<bool> equal(const Place& a, const Place& b) const;

  std::string path_;
  spec::ModelSpec model_;
  std::vector<families::HfTensor> tensors_;
  std::map<std::string, std::vector<const families::HfTensor*>> parts_of_;  // of each parameter
  std::vector<checkpoint::SafetensorsFile> files_;
  std::map<std::string, Place> places_;  // of each tensor on disk
};

}  // namespace penteract::convert
