// The catalog part of a rank: what its data file holds, piece by piece. Binary, little-endian, checksummed; byte for
// byte in docs/formats/checkpoint.md. Checksums are XXH3-128 as 32 hexadecimal digits. Thread-safety: value types.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "penteract/base/result.h"
#include "penteract/checkpoint/dtype.h"
#include "penteract/topology/slice.h"

namespace penteract::checkpoint {

struct CatalogFile {
  std::string name;  // beside the catalog
  uint64_t size_bytes = 0;
  uint64_t header_bytes = 0;    // of the safetensors header, its length included
  std::string header_checksum;  // of those bytes
};

struct CatalogPiece {
  std::string tensor;  // global name, for example "master.lm_head.weight"
  Dtype dtype = Dtype::f32;
  std::vector<int64_t> global_shape;
  topology::Slice slice;      // not empty
  uint32_t file = 0;          // index into Catalog::files
  uint64_t offset_bytes = 0;  // in the file
  uint64_t size_bytes = 0;
  std::string checksum;

  std::string name() const { return tensor + slice.to_string(); }  // its name in the safetensors file
};

struct Catalog {
  int64_t step = 0;
  int rank = 0;
  int num_ranks = 0;
  std::vector<CatalogFile> files;
  std::vector<CatalogPiece> pieces;
};

std::string encode_catalog(const Catalog& catalog);

// Checks the checksum first, then every number: what it returns lies inside its tensors and files.
// Errors: checkpoint_damaged (checksum), checkpoint_malformed, naming `culprit` and the piece.
Result<Catalog> decode_catalog(std::string_view bytes, const std::string& culprit);

}  // namespace penteract::checkpoint
