#include "penteract/checkpoint/dtype.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "penteract/base/check.h"

namespace penteract::checkpoint {
namespace {

struct Row {
  Dtype dtype;
  std::string_view name;
  int64_t size_bytes;
  at::ScalarType type;
};

constexpr std::array<Row, 10> kRows = {{{Dtype::f64, "F64", 8, at::kDouble},
                                        {Dtype::f32, "F32", 4, at::kFloat},
                                        {Dtype::bf16, "BF16", 2, at::kBFloat16},
                                        {Dtype::f16, "F16", 2, at::kHalf},
                                        {Dtype::i64, "I64", 8, at::kLong},
                                        {Dtype::i32, "I32", 4, at::kInt},
                                        {Dtype::i16, "I16", 2, at::kShort},
                                        {Dtype::i8, "I8", 1, at::kChar},
                                        {Dtype::u8, "U8", 1, at::kByte},
                                        {Dtype::boolean, "BOOL", 1, at::kBool}}};

const Row& row(Dtype dtype) {
  const auto index = static_cast<size_t>(dtype) - 1;
  PENT_CHECK_LT(index, kRows.size());
  return kRows[index];
}

template <class Match>
std::optional<Dtype> find(Match match) {
  const auto it = std::ranges::find_if(kRows, match);
  return it == kRows.end() ? std::nullopt : std::optional(it->dtype);
}

}  // namespace

std::string_view dtype_name(Dtype dtype) { return row(dtype).name; }
int64_t dtype_bytes(Dtype dtype) { return row(dtype).size_bytes; }
at::ScalarType scalar_type(Dtype dtype) { return row(dtype).type; }
bool is_floating(Dtype dtype) { return dtype <= Dtype::f16; }

std::optional<Dtype> dtype_from_name(std::string_view name) {
  return find([&](const Row& r) { return r.name == name; });
}
std::optional<Dtype> dtype_from_code(uint8_t code) {
  return find([&](const Row& r) { return static_cast<uint8_t>(r.dtype) == code; });
}
std::optional<Dtype> dtype_of(at::ScalarType type) {
  return find([&](const Row& r) { return r.type == type; });
}

std::string dtype_names() {
  std::vector<std::string_view> names;
  for (const Row& r : kRows) names.push_back(r.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

std::optional<uint64_t> tensor_bytes(const std::vector<int64_t>& shape, Dtype dtype) {
  if (shape.size() > kMaxDims) return std::nullopt;
  int64_t bytes = dtype_bytes(dtype);
  bool empty = false;
  for (const int64_t dim : shape) {
    if (dim < 0) return std::nullopt;
    empty |= dim == 0;
    if (__builtin_mul_overflow(bytes, std::max<int64_t>(dim, 1), &bytes) || bytes > int64_t{1} << 62)
      return std::nullopt;
  }
  return empty ? 0 : static_cast<uint64_t>(bytes);
}

std::string shape_text(const std::vector<int64_t>& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

}  // namespace penteract::checkpoint
