// Where the weights of a model come from: a checkpoint step here, a Hugging Face directory in convert/.
// Thread-safety: several threads may read at once.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "penteract/base/result.h"
#include "penteract/checkpoint/reader.h"
#include "penteract/spec/param_table.h"
#include "penteract/topology/slice.h"

namespace penteract::checkpoint {

class WeightSource {
 public:
  virtual ~WeightSource() = default;
  // Every parameter of the table is there in its shape, and nothing is there that the table does not have.
  // Errors: checkpoint_mismatch and those of the source, naming the differences.
  virtual Status check(const std::vector<spec::Param>& table) const = 0;
  // The elements of a slice of a parameter into `out` (CPU, contiguous, floating), cast to its dtype, rounded to nearest
  // even. Errors: those of the source.
  virtual Status read(const std::string& param, const topology::Slice& slice, const at::Tensor& out) const = 0;
};

// The masters of a step. Lifetime: the reader outlives it.
class StepWeights : public WeightSource {
 public:
  explicit StepWeights(const Reader& reader) : reader_(reader) {}
  Status check(const std::vector<spec::Param>& table) const override;
  Status read(const std::string& param, const topology::Slice& slice, const at::Tensor& out) const override;

 private:
  const Reader& reader_;
};

// The tensors that a step holds of a parameter.
inline constexpr const char* kParamTensors[] = {"master.", "exp_avg.", "exp_avg_sq."};

}  // namespace penteract::checkpoint
