#include "penteract/checkpoint/agree.h"

#include <fmt/format.h>

#include <cstring>

#include "penteract/base/text.h"

namespace penteract::checkpoint {
namespace {

// Between the texts of an error; they are messages and hold none.
constexpr char kSeparator = '\0';

}  // namespace

std::string broadcast_text(const comm::Group& group, const std::string& mine, int root_index) {
  const auto sizes = group.all_gather_int64({static_cast<int64_t>(mine.size())}, {.tag = "text"});
  at::Tensor bytes = at::zeros({sizes[static_cast<size_t>(root_index)]}, at::TensorOptions(at::kByte));
  if (bytes.numel() == 0) return "";
  if (group.index() == root_index) std::memcpy(bytes.mutable_data_ptr(), mine.data(), mine.size());
  group.broadcast(bytes, root_index, {.tag = "text"});
  return {static_cast<const char*>(bytes.const_data_ptr()), static_cast<size_t>(bytes.numel())};
}

Status agree(const comm::Group& group, const Status& mine) {
  const auto codes =
      group.all_gather_int64({mine.ok() ? 0 : static_cast<int64_t>(mine.error().code)}, {.tag = "agree"});
  for (int i = 0; i < group.size(); ++i) {
    const int64_t code = codes[static_cast<size_t>(i)];
    if (code == 0) continue;
    std::string text;
    if (i == group.index())
      text = mine.error().what + kSeparator + mine.error().culprit + kSeparator + mine.error().remedy;
    const auto fields = split_text(broadcast_text(group, text, i), kSeparator);
    return Error{static_cast<ErrorCode>(code), fields.at(0), fmt::format("rank {}: {}", group.rank(i), fields.at(1)),
                 fields.at(2)};
  }
  return {};
}

}  // namespace penteract::checkpoint
