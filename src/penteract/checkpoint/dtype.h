// The dtypes of safetensors files that penteract reads and writes, and sizes that cannot overflow.
// Thread-safety: pure functions.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace penteract::checkpoint {

// The numbers are those of the catalog format (docs/formats/checkpoint.md).
enum class Dtype : uint8_t { f64 = 1, f32, bf16, f16, i64, i32, i16, i8, u8, boolean };

std::string_view dtype_name(Dtype dtype);  // "F64"
int64_t dtype_bytes(Dtype dtype);          // of one element
at::ScalarType scalar_type(Dtype dtype);
bool is_floating(Dtype dtype);

std::optional<Dtype> dtype_from_name(std::string_view name);
std::optional<Dtype> dtype_from_code(uint8_t code);
std::optional<Dtype> dtype_of(at::ScalarType type);
std::string dtype_names();  // "F64, F32, ..." for messages

// Bytes of a tensor; nothing when a dim is negative, when there are more than kMaxDims, or when the product (zero dims
// counted as one, so that strides fit too) passes 2^62.
inline constexpr size_t kMaxDims = 16;
std::optional<uint64_t> tensor_bytes(const std::vector<int64_t>& shape, Dtype dtype);

std::string shape_text(const std::vector<int64_t>& shape);  // "[4, 16]"

}  // namespace penteract::checkpoint
