// Re-reads every byte of a step against its checksums. Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "penteract/base/result.h"

namespace penteract::checkpoint {

struct VerifyReport {
  std::string step_dir;
  int64_t step = -1;  // -1 where state.json cannot say
  int num_parts = 0;
  int64_t num_tensors = 0;
  int64_t num_pieces = 0;
  uint64_t num_bytes = 0;       // read
  std::vector<Error> problems;  // each names the file or tensor; codes as in step_directory.h

  bool ok() const { return problems.empty(); }
  // Whether a part or file is absent: the rest of a save that never finished, or of a deletion.
  bool incomplete() const;
  std::string text() const;  // for people: a verdict, then one line a problem; at most 100 columns where names allow
  std::string json() const;
};

// Goes on after a problem, so that one call names all that is missing or damaged.
// Errors: checkpoint_missing (no such folder, or nothing in it is of a step). What is wrong inside is in the report.
Result<VerifyReport> verify(const std::string& step_dir);

}  // namespace penteract::checkpoint
