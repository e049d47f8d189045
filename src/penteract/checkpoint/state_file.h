// state.json of a step: what all ranks share, and the list of parts, so that a missing one is recognised.
// Carries a checksum of itself. Byte for byte in docs/formats/checkpoint.md. Thread-safety: value types.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "penteract/base/result.h"

namespace penteract::checkpoint {

inline constexpr const char* kStateFileName = "state.json";

struct SharedState {
  int64_t step = 0;
  int64_t tokens = 0;   // seen so far
  int64_t samples = 0;  // drawn so far: the data position
  uint64_t seed = 0;
  int num_ranks = 0;        // filled in by save()
  std::string layout;       // topology::to_string
  std::string recipe_toml;  // resolved
  std::string extra_json;   // of the caller; opaque here
};

// What a step says about the part of one rank.
struct PartRecord {
  int rank = 0;
  uint64_t catalog_bytes = 0;
  std::string catalog_checksum;  // XXH3-128 of the whole catalog file
  uint64_t data_bytes = 0;
};

struct StateFile {
  SharedState state;
  std::vector<PartRecord> parts;  // one a rank, in rank order
};

// Errors: invalid_argument (a text is not UTF-8).
Result<std::string> encode_state(const StateFile& file);

// Errors: checkpoint_damaged (checksum, no JSON), checkpoint_malformed; `culprit` names the file.
Result<StateFile> decode_state(std::string_view text, const std::string& culprit);

}  // namespace penteract::checkpoint
