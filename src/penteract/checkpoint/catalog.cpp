#include "penteract/checkpoint/catalog.h"

#include <fmt/format.h>

#include "penteract/base/check.h"
#include "penteract/base/hash.h"

namespace penteract::checkpoint {
namespace {

constexpr std::string_view kMagic = "PENTCAT\n";
constexpr uint32_t kVersion = 1;
constexpr size_t kChecksumBytes = 16;
constexpr int kMaxRanks = 1 << 24;

class Encoder {
 public:
  template <class T>
  void number(T value) {
    for (size_t i = 0; i < sizeof(T); ++i) out_ += static_cast<char>(static_cast<uint64_t>(value) >> (8 * i) & 0xff);
  }
  void text(const std::string& value) {
    PENT_CHECK_LE(value.size(), size_t{UINT16_MAX});
    number(static_cast<uint16_t>(value.size()));
    out_ += value;
  }
  void checksum(const std::string& hex) {
    PENT_CHECK_EQ(hex.size(), 2 * kChecksumBytes);
    for (size_t i = 0; i < hex.size(); i += 2) out_ += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  void numbers(const std::vector<int64_t>& values) {
    for (const int64_t v : values) number(v);
  }
  void raw(std::string_view bytes) { out_ += bytes; }
  std::string finish() {
    checksum(hash128_hex(out_.data(), out_.size()));
    return std::move(out_);
  }

 private:
  std::string out_;
};

std::string to_hex(std::string_view bytes) {
  std::string hex;
  for (const char c : bytes) hex += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return hex;
}

// Takes fields from the front; once they run out, ok() is false and every field is zero or empty.
class Decoder {
 public:
  explicit Decoder(std::string_view bytes) : rest_(bytes) {}
  bool ok() const { return ok_; }
  size_t left() const { return rest_.size(); }

  std::string_view raw(size_t size) {
    if (size > rest_.size()) {
      ok_ = false;
      rest_ = {};
    }
    const std::string_view taken = rest_.substr(0, ok_ ? size : 0);
    rest_.remove_prefix(taken.size());
    return taken;
  }
  template <class T>
  T number() {
    uint64_t value = 0;
    const std::string_view bytes = raw(sizeof(T));
    for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
    return static_cast<T>(value);
  }
  std::string text() { return std::string(raw(number<uint16_t>())); }
  std::string checksum() { return to_hex(raw(kChecksumBytes)); }
  std::vector<int64_t> numbers(size_t count) {
    std::vector<int64_t> values(count);
    for (int64_t& v : values) v = number<int64_t>();
    return values;
  }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

Error malformed(const std::string& culprit, const std::string& what) {
  return {ErrorCode::checkpoint_malformed, what, culprit, "use another checkpoint"};
}

bool is_plain_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

// What is wrong with a piece, or "".
std::string piece_problem(const CatalogPiece& piece, const std::vector<CatalogFile>& files) {
  const auto global_bytes = tensor_bytes(piece.global_shape, piece.dtype);
  if (!global_bytes) return fmt::format("has the impossible shape {}", shape_text(piece.global_shape));
  for (size_t d = 0; d < piece.global_shape.size(); ++d) {
    const int64_t offset = piece.slice.offset[d], size = piece.slice.size[d], dim = piece.global_shape[d];
    if (size < 1 || size > dim || offset < 0 || offset > dim - size) {
      return fmt::format("is not inside its tensor of shape {}", shape_text(piece.global_shape));
    }
  }
  if (tensor_bytes(piece.slice.size, piece.dtype) != piece.size_bytes) {
    return fmt::format("has {} bytes, which its slice has not", piece.size_bytes);
  }
  if (piece.file >= files.size()) return fmt::format("is in file {} of {}", piece.file, files.size());
  const CatalogFile& file = files[piece.file];
  if (piece.offset_bytes < file.header_bytes || piece.offset_bytes > file.size_bytes ||
      piece.size_bytes > file.size_bytes - piece.offset_bytes) {
    return fmt::format("lies outside {}, which has {} bytes", file.name, file.size_bytes);
  }
  return "";
}

}  // namespace

std::string encode_catalog(const Catalog& catalog) {
  Encoder out;
  out.raw(kMagic);
  out.number(kVersion);
  out.number(static_cast<uint32_t>(catalog.rank));
  out.number(static_cast<uint32_t>(catalog.num_ranks));
  out.number(catalog.step);
  out.number(static_cast<uint32_t>(catalog.files.size()));
  out.number(static_cast<uint32_t>(catalog.pieces.size()));
  for (const CatalogFile& file : catalog.files) {
    out.text(file.name);
    out.number(file.size_bytes);
    out.number(file.header_bytes);
    out.checksum(file.header_checksum);
  }
  for (const CatalogPiece& piece : catalog.pieces) {
    out.text(piece.tensor);
    out.number(static_cast<uint8_t>(piece.dtype));
    out.number(static_cast<uint8_t>(piece.global_shape.size()));
    out.numbers(piece.global_shape);
    out.numbers(piece.slice.offset);
    out.numbers(piece.slice.size);
    out.number(piece.file);
    out.number(piece.offset_bytes);
    out.number(piece.size_bytes);
    out.checksum(piece.checksum);
  }
  return out.finish();
}

Result<Catalog> decode_catalog(std::string_view bytes, const std::string& culprit) {
  if (!bytes.starts_with(kMagic)) return malformed(culprit, "is no penteract catalog");
  Decoder version_field(bytes.substr(kMagic.size()));
  const auto version = version_field.number<uint32_t>();
  if (version_field.ok() && version != kVersion) {
    return Error{ErrorCode::checkpoint_malformed,
                 fmt::format("has version {}, this program reads {}", version, kVersion), culprit,
                 "read it with the penteract that wrote it"};
  }
  if (bytes.size() < kMagic.size() + kChecksumBytes ||
      hash128_hex(bytes.data(), bytes.size() - kChecksumBytes) != to_hex(bytes.substr(bytes.size() - kChecksumBytes))) {
    return Error{ErrorCode::checkpoint_damaged, "its bytes do not have the checksum at its end", culprit,
                 "the file was damaged or cut short: use another copy or an older checkpoint"};
  }
  Decoder in(bytes.substr(0, bytes.size() - kChecksumBytes));
  in.raw(kMagic.size() + sizeof(uint32_t));
  Catalog catalog;
  const auto rank = in.number<uint32_t>(), num_ranks = in.number<uint32_t>();
  catalog.step = in.number<int64_t>();
  const auto num_files = in.number<uint32_t>(), num_pieces = in.number<uint32_t>();
  if (!in.ok() || num_ranks < 1 || num_ranks > kMaxRanks || rank >= num_ranks || catalog.step < 0) {
    return malformed(culprit, fmt::format("is of rank {} of {}, step {}", rank, num_ranks, catalog.step));
  }
  catalog.rank = static_cast<int>(rank);
  catalog.num_ranks = static_cast<int>(num_ranks);
  for (uint32_t i = 0; i < num_files && in.ok(); ++i) {
    CatalogFile file;
    file.name = in.text();
    file.size_bytes = in.number<uint64_t>();
    file.header_bytes = in.number<uint64_t>();
    file.header_checksum = in.checksum();
    if (in.ok() && (!is_plain_name(file.name) || file.header_bytes > file.size_bytes)) {
      return malformed(culprit, fmt::format("names the file \"{}\" with {} bytes", file.name, file.size_bytes));
    }
    catalog.files.push_back(std::move(file));
  }
  for (uint32_t i = 0; i < num_pieces && in.ok(); ++i) {
    CatalogPiece piece;
    piece.tensor = in.text();
    const auto dtype = dtype_from_code(in.number<uint8_t>());
    const size_t dims = in.number<uint8_t>();
    piece.global_shape = in.numbers(dims);
    piece.slice.offset = in.numbers(dims);
    piece.slice.size = in.numbers(dims);
    piece.file = in.number<uint32_t>();
    piece.offset_bytes = in.number<uint64_t>();
    piece.size_bytes = in.number<uint64_t>();
    piece.checksum = in.checksum();
    if (!in.ok()) break;
    if (!dtype) return malformed(culprit, fmt::format("piece {} has an unknown dtype", piece.tensor));
    piece.dtype = *dtype;
    if (const std::string problem = piece_problem(piece, catalog.files); !problem.empty()) {
      return malformed(culprit, fmt::format("piece {} {}", piece.name(), problem));
    }
    catalog.pieces.push_back(std::move(piece));
  }
  if (!in.ok()) return malformed(culprit, "ends before its last piece");
  if (in.left() != 0) return malformed(culprit, fmt::format("has {} bytes after its last piece", in.left()));
  return catalog;
}

}  // namespace penteract::checkpoint
