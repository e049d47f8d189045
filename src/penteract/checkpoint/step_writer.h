// Writes one step so that a crash at any byte leaves what was there before: everything under step-X.tmp, synced, then
// one rename. No communication here: save.h runs these in order over a group.
// Thread-safety: write_part of different ranks at once; a StepTransaction is one thread's.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "penteract/checkpoint/state_file.h"
#include "penteract/topology/slice.h"

namespace penteract::checkpoint {

// A slice of a global tensor that this rank stores.
struct Piece {
  std::string tensor;  // "master.lm_head.weight", "exp_avg.…", "exp_avg_sq.…"
  std::vector<int64_t> global_shape;
  topology::Slice slice;
  at::Tensor data;  // contiguous, the slice's elements, of any shape
};

// Where the files of a step are written before it is committed.
std::string temporary_directory(const std::string& checkpoints_dir, int64_t step);

// Writes and syncs rank-R.safetensors and rank-R.catalog in `dir`. Pieces without elements are left out. The bytes
// depend on the arguments alone. REQUIRES: distinct (tensor, slice).
// Errors: storage_write, storage_full, invalid_argument (a dtype that cannot be stored).
Result<PartRecord> write_part(const std::string& dir, int64_t step, int rank, int num_ranks,
                              const std::vector<Piece>& pieces);

class StepTransaction {
 public:
  // Records the step in index.json as this run's, removes the temporary leftovers of recorded steps (and of this one),
  // creates the temporary folder.
  static Result<StepTransaction> begin(const std::string& checkpoints_dir, int64_t step);

  // When all parts are written: reads the catalogs back, checks that the pieces cover every tensor exactly once, writes
  // state.json, renames (a step of the same name is replaced, whole or torn), moves `latest`.
  // The rename is the commit: an error after it leaves a complete step.
  Status commit(const SharedState& state, std::vector<PartRecord> parts);

  // Removes the temporary folder and the record of the step, as if it had never begun. Best effort; nothing after the
  // rename.
  void abandon();

  // True once the step stands under its name, whatever came after.
  bool committed() const { return committed_; }

 private:
  StepTransaction(std::string checkpoints_dir, int64_t step, std::vector<std::string> records_before);
  std::string checkpoints_dir_;
  int64_t step_;
  std::vector<std::string> records_before_;
  bool committed_ = false;
};

}  // namespace penteract::checkpoint
