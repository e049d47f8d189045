// Which steps a run has written (index.json) and which of them may go. Goes by these records alone, never by file
// times or by names: steps that the run did not write are never deleted. Thread-safety: one writer at a time.
#pragma once

#include <string>
#include <vector>

#include "penteract/base/result.h"

namespace penteract::checkpoint {

// The names of the steps, in the order in which they were written. An absent file is an empty list.
// Errors: file_malformed, with the remedy; reading errors.
Result<std::vector<std::string>> read_records(const std::string& checkpoints_dir);
Status write_records(const std::string& checkpoints_dir, const std::vector<std::string>& names);

// Deletes the recorded steps that were written before the `keep` last complete ones; 0 keeps all. Call after a commit:
// the newest complete step is never deleted. Errors: storage_write (what cannot be deleted stays recorded).
Status retain_steps(const std::string& checkpoints_dir, int keep);

// Removes a folder or file with all it holds; a step becomes recognisably incomplete first. Absent is fine.
Status remove_tree(const std::string& path);

}  // namespace penteract::checkpoint
