#include "penteract/train/event_file.h"

#include <array>
#include <bit>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <optional>

#include "penteract/base/file.h"
#include "penteract/train/tensorboard.pb.h"

namespace penteract::train {
namespace {

static_assert(std::endian::native == std::endian::little, "frames are written as they lie in memory");

// Ours have less than 1 KiB; a longer one is a damaged length.
constexpr uint64_t kMaxRecordBytes = uint64_t{1} << 20;
constexpr size_t kHeadBytes = 12, kTailBytes = 4;

// Debian has no library for it.
constexpr std::array<uint32_t, 256> kCrcTable = [] {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) ? 0x82F63B78U : 0U);
    table[i] = crc;
  }
  return table;
}();

// TFRecord's mask, so that a checksum of data that hold checksums stays strong.
uint32_t masked_crc(std::string_view bytes) {
  const uint32_t crc = crc32c(bytes);
  return std::rotr(crc, 15) + 0xA282EAD8U;
}

template <class T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <class T>
T get(std::string_view bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

std::string frame(std::string_view data) {
  std::string out;
  put<uint64_t>(out, data.size());
  put<uint32_t>(out, masked_crc(out));
  out += data;
  put<uint32_t>(out, masked_crc(data));
  return out;
}

tb::Event event_now() {
  tb::Event event;
  event.set_wall_time(std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count());
  return event;
}

// Takes the next frame from the front of `rest`; nothing where no frame can be told from what follows.
std::optional<std::string_view> take_frame(std::string_view& rest) {
  if (rest.size() < kHeadBytes + kTailBytes) return {};
  const auto length = get<uint64_t>(rest);
  if (get<uint32_t>(rest.substr(8)) != masked_crc(rest.substr(0, 8))) return {};
  if (length > kMaxRecordBytes || length > rest.size() - kHeadBytes - kTailBytes) return {};
  const std::string_view taken = rest.substr(0, kHeadBytes + length + kTailBytes);
  rest.remove_prefix(taken.size());
  return taken;
}

std::string version_frame() {
  tb::Event event = event_now();
  event.set_file_version("brain.Event:2");
  return frame(event.SerializeAsString());
}

// The version's frame and those of steps 1 to last_step. Steps that do not rise are left out: each stands once.
std::string kept_frames(std::string_view rest, int64_t last_step) {
  std::string version, steps;
  int64_t previous = 0;
  while (const auto taken = take_frame(rest)) {
    const std::string_view data = taken->substr(kHeadBytes, taken->size() - kHeadBytes - kTailBytes);
    tb::Event event;
    if (get<uint32_t>(taken->substr(taken->size() - kTailBytes)) != masked_crc(data)) continue;
    if (!event.ParseFromArray(data.data(), static_cast<int>(data.size()))) continue;
    if (event.has_file_version() && version.empty()) version = *taken;
    if (!event.has_summary() || event.step() <= previous || event.step() > last_step) continue;
    previous = event.step();
    steps += *taken;
  }
  return (version.empty() ? version_frame() : version) + steps;
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  uint32_t crc = ~0U;
  for (const char c : bytes) crc = (crc >> 8) ^ kCrcTable[(crc ^ static_cast<uint8_t>(c)) & 0xFF];
  return ~crc;
}

Result<EventFile> EventFile::open(const std::string& path, int64_t last_step) {
  std::string before;
  if (last_step > 0 && std::filesystem::exists(path)) {
    PENT_ASSIGN(before, read_file(path));
  }
  const std::string kept = kept_frames(before, last_step);
  if (kept != before) PENT_TRY(write_file_atomic(path, kept));
  return EventFile(path);
}

Status EventFile::append(int64_t step, const std::vector<Scalar>& scalars) {
  tb::Event event = event_now();
  event.set_step(step);
  for (const Scalar& scalar : scalars) {
    auto* value = event.mutable_summary()->add_value();
    value->set_tag(scalar.tag);
    value->set_simple_value(scalar.value);
  }
  // Without the version at its beginning it is no file of events.
  return append_file(path_, frame(event.SerializeAsString()), Absent::error);
}

}  // namespace penteract::train
