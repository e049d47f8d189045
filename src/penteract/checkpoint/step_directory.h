// The names in a checkpoints folder, and a step directory read as far as it can be without its data:
//   checkpoints/step-00000010/{state.json, rank-00000.safetensors, rank-00000.catalog, ...}, latest, index.json
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "penteract/checkpoint/catalog.h"
#include "penteract/checkpoint/state_file.h"

namespace penteract::checkpoint {

inline constexpr const char* kLatestFileName = "latest";
inline constexpr const char* kTemporarySuffix = ".tmp";

std::string step_name(int64_t step);                            // "step-00000010"
std::optional<int64_t> parse_step_name(std::string_view name);  // only what step_name makes: no "step-10.backup"
std::string catalog_name(int rank);                             // "rank-00000.catalog"
std::string data_name(int rank);                                // "rank-00000.safetensors"
std::string join_path(const std::string& folder, const std::string& name);

// The steps of the folder, whole or not, ascending. A folder that does not exist has none. Errors: file_unreadable.
Result<std::vector<int64_t>> list_steps(const std::string& checkpoints_dir);

// Errors: checkpoint_missing (no such folder), checkpoint_incomplete (no state.json), those of decode_state.
Result<StateFile> read_state(const std::string& step_dir);

// The catalog of one part, held against `state`: size and checksum, step, ranks, names; and the sizes of its data
// files. Errors: checkpoint_incomplete (a file is missing), checkpoint_damaged, those of decode_catalog.
Result<Catalog> read_part(const std::string& step_dir, const StateFile& state, int rank);

struct StepContents {
  StateFile file;
  std::vector<Catalog> catalogs;  // in rank order
};
// All of it; the first thing wrong is the error.
Result<StepContents> read_step(const std::string& step_dir);

}  // namespace penteract::checkpoint
