// XXH3 hashes (libxxhash). Thread-safety: pure functions; Hasher128 is one thread's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace penteract {

uint64_t hash64(const void* data, size_t size_bytes, uint64_t seed = 0);

// The 128-bit XXH3 of the bytes as 32 hexadecimal digits: the checksum of files and slices.
std::string hash128_hex(const void* data, size_t size_bytes);

// The same over a stream of pieces.
class Hasher128 {
 public:
  Hasher128();
  ~Hasher128();
  Hasher128(const Hasher128&) = delete;
  Hasher128& operator=(const Hasher128&) = delete;
  void update(const void* data, size_t size_bytes);
  std::string hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace penteract
