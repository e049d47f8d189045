// Where the rows of a mixture of experts go: a plan made once in forward from the choices, used by backward too.
// A rank sorts its (token, choice) pairs by expert, sends them over ep to the owners, gathers them over etp (each member
// holds a part of every expert's width), sorts them expert by expert. The way back is the reverse. Dropless.
// Thread-safety: value type; made by COLLECTIVE: etp·ep.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "penteract/parallel/groups.h"

namespace penteract::parallel {

struct ExpertPlan {
  at::Tensor token_of_row;                    // int64 [M]: the local token of each row sent, rows in expert order
  at::Tensor row_of_choice;                   // int64 [T·K]: the row of a choice, -1 for pads
  std::vector<int64_t> send_rows, recv_rows;  // over ep
  std::vector<int64_t> etp_rows;              // rows each etp member received over ep
  at::Tensor to_expert;                       // int64 [R]: row in expert order -> row as gathered over etp
  at::Tensor from_expert;                     // int64 [R]: its inverse
  std::vector<int64_t> counts;                // rows of each local expert; sums to R
};

// experts int64 [T, K], valid bool [T], on one device, which gets the index tensors too. Waits for the device.
// COLLECTIVE: etp·ep.
ExpertPlan plan_experts(const at::Tensor& experts, const at::Tensor& valid, int64_t num_experts, const Groups& groups);

}  // namespace penteract::parallel
