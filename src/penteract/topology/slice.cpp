#include "penteract/topology/slice.h"

#include <fmt/format.h>

#include <algorithm>

#include "penteract/base/check.h"

namespace penteract::topology {

int64_t Slice::num_elements() const {
  int64_t n = 1;
  for (int64_t s : size) n *= s;
  return n;
}

std::string Slice::to_string() const {
  std::string text = "[";
  for (int d = 0; d < num_dims(); ++d) {
    // Also of a file's numbers before they are checked: their sum may not fit.
    int64_t end = 0;
    const bool fits = !__builtin_add_overflow(offset[d], size[d], &end);
    text += fmt::format("{}{}:{}", d ? ", " : "", offset[d], fits ? fmt::to_string(end) : fmt::format("+{}", size[d]));
  }
  return text + "]";
}

std::optional<Slice> intersect(const Slice& a, const Slice& b) {
  PENT_CHECK_EQ(a.num_dims(), b.num_dims());
  Slice out = a;
  for (int d = 0; d < a.num_dims(); ++d) {
    const int64_t first = std::max(a.offset[d], b.offset[d]);
    const int64_t end = std::min(a.offset[d] + a.size[d], b.offset[d] + b.size[d]);
    if (end <= first) return std::nullopt;
    out.offset[d] = first;
    out.size[d] = end - first;
  }
  return out;
}

Range even_part(int64_t size, int64_t num_parts, int64_t index) {
  PENT_CHECK(num_parts >= 1 && index >= 0 && index < num_parts, "part {} of {}", index, num_parts);
  const int64_t base = size / num_parts, extra = size % num_parts;
  return {index * base + std::min(index, extra), base + (index < extra ? 1 : 0)};
}

std::vector<Slice> slices_of_flat_range(const std::vector<int64_t>& shape, Range range) {
  const int dims = static_cast<int>(shape.size());
  std::vector<int64_t> stride(dims + 1, 1);  // stride[d] = elements of one index step of dim d - 1
  for (int d = dims - 1; d >= 0; --d) stride[d] = stride[d + 1] * shape[d];
  PENT_CHECK(range.first >= 0 && range.count >= 0 && range.first + range.count <= stride[0], "range {}+{} of {}",
             range.first, range.count, stride[0]);
  std::vector<Slice> slices;
  if (dims == 0) {
    if (range.count > 0) slices.push_back({});
    return slices;
  }
  int64_t at = range.first;
  const int64_t end = range.first + range.count;
  while (at < end) {
    // The largest block that starts here: dim d is the outermost whose inner dims all start at 0 and fit.
    int d = dims - 1;
    while (d > 0 && at % stride[d] == 0 && at + stride[d] <= end) --d;
    const int64_t step = stride[d + 1];
    const int64_t index = at / step % shape[d];
    const int64_t count = std::min(shape[d] - index, (end - at) / step);
    Slice s = Slice::whole(shape);
    for (int k = 0; k <= d; ++k) {
      s.offset[k] = at / stride[k + 1] % shape[k];
      s.size[k] = 1;
    }
    s.size[d] = count;
    slices.push_back(std::move(s));
    at += count * step;
  }
  return slices;
}

int64_t flat_offset(const Slice& outer, const Slice& inner) {
  int64_t index = 0;
  for (int d = 0; d < outer.num_dims(); ++d) index = index * outer.size[d] + inner.offset[d] - outer.offset[d];
  return index;
}

}  // namespace penteract::topology
