// A file of TensorBoard events with scalars: an event a step, each step once.
// Format: TFRecord frames (length u64, its masked CRC-32C, the data, their masked CRC-32C; little-endian) of the
// messages in tensorboard.proto. Stands apart from tensorboard.h because its source must not see libtorch's headers,
// among which are those of an older protobuf. Thread-safety: one thread's.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "penteract/base/result.h"

namespace penteract::train {

struct Scalar {
  std::string tag;
  float value = 0;
};

class EventFile {
 public:
  // Keeps the events of steps 1 to `last_step` of an existing file (0: none), whole ones only; makes a missing file.
  // A file of which all is kept is not replaced: a TensorBoard that reads it goes on. Errors: those of base/file.h.
  static Result<EventFile> open(const std::string& path, int64_t last_step);

  // Adds an event of now and makes it durable. REQUIRES: step above those in the file; scalars not empty.
  Status append(int64_t step, const std::vector<Scalar>& scalars);

 private:
  explicit EventFile(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// The Castagnoli checksum (RFC 3720, appendix B.4), not masked.
uint32_t crc32c(std::string_view bytes);

}  // namespace penteract::train
