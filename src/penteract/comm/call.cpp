#include "penteract/comm/call.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

namespace penteract::comm {

std::string describe(const Call& call) {
  const int num_shown = std::min<int>(call.num_dims, static_cast<int>(call.shape.size()));
  std::string text = fmt::format("{} {} [{}{}], {} bytes", call.operation, c10::toString(call.dtype),
                                 fmt::join(call.shape.begin(), call.shape.begin() + num_shown, ", "),
                                 num_shown < call.num_dims ? ", ..." : "", call.payload_bytes);
  if (*call.tag != '\0') text += fmt::format(", tag '{}'", call.tag);
  return text;
}

bool same_call(const Call& a, const Call& b) {
  return a.dtype == b.dtype && a.agreed == b.agreed && (a.device == nullptr) == (b.device == nullptr) &&
         std::strcmp(a.operation, b.operation) == 0;
}

}  // namespace penteract::comm
