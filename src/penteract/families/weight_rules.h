// How the tensors of a Hugging Face checkpoint and the parameters of penteract correspond. Thread-safety: value types.
#pragma once

#include <string>
#include <vector>

#include "penteract/topology/slice.h"

namespace penteract::families {

// A Hugging Face tensor is a slice of one parameter, element by element in row-major order.
struct HfTensor {
  std::string name;
  std::vector<int64_t> shape;  // the slice's sizes without those of 1 that the tensor does not have
  std::string param;
  topology::Slice slice;
};

}  // namespace penteract::families
