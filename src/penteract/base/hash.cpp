#include "penteract/base/hash.h"

#include <fmt/format.h>
#include <xxhash.h>

#include "penteract/base/check.h"

namespace penteract {
namespace {
std::string to_hex(XXH128_hash_t h) { return fmt::format("{:016x}{:016x}", h.high64, h.low64); }
}  // namespace

struct Hasher128::State {
  XXH3_state_t* xxh;
};

uint64_t hash64(const void* data, size_t size_bytes, uint64_t seed) {
  return XXH3_64bits_withSeed(data, size_bytes, seed);
}

std::string hash128_hex(const void* data, size_t size_bytes) { return to_hex(XXH3_128bits(data, size_bytes)); }

Hasher128::Hasher128() : state_(new State{XXH3_createState()}) {
  PENT_CHECK(state_->xxh != nullptr && XXH3_128bits_reset(state_->xxh) == XXH_OK);
}
Hasher128::~Hasher128() { XXH3_freeState(state_->xxh); }
void Hasher128::update(const void* data, size_t size_bytes) {
  PENT_CHECK(XXH3_128bits_update(state_->xxh, data, size_bytes) == XXH_OK);
}
std::string Hasher128::hex() const { return to_hex(XXH3_128bits_digest(state_->xxh)); }

}  // namespace penteract
