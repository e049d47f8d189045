#include "penteract/checkpoint/tensor_index.h"

#include <fmt/format.h>

#include <algorithm>

namespace penteract::checkpoint {

Result<TensorIndex> index_tensors(const std::vector<Catalog>& catalogs) {
  TensorIndex index;
  for (size_t c = 0; c < catalogs.size(); ++c) {
    for (size_t p = 0; p < catalogs[c].pieces.size(); ++p) {
      const CatalogPiece& piece = catalogs[c].pieces[p];
      TensorInfo& info = index[piece.tensor];
      if (info.pieces.empty()) {
        info = {piece.tensor, piece.dtype, piece.global_shape, {}};
      } else if (info.dtype != piece.dtype || info.shape != piece.global_shape) {
        return Error{ErrorCode::checkpoint_malformed,
                     fmt::format("rank {} says {} {}, rank {} says {} {}", catalogs[info.pieces[0].catalog].rank,
                                 dtype_name(info.dtype), shape_text(info.shape), catalogs[c].rank,
                                 dtype_name(piece.dtype), shape_text(piece.global_shape)),
                     "tensor " + piece.tensor, "the parts do not belong together"};
      }
      info.pieces.push_back({c, p});
    }
  }
  return index;
}

Status check_cover(const std::string& tensor, const topology::Slice& wanted, std::vector<topology::Slice> pieces) {
  const auto first = [](const topology::Slice& s) { return s.offset.empty() ? int64_t{0} : s.offset[0]; };
  const auto end = [](const topology::Slice& s) { return s.offset.empty() ? int64_t{1} : s.offset[0] + s.size[0]; };
  std::ranges::sort(pieces, {}, &topology::Slice::offset);
  int64_t covered = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const auto common = topology::intersect(pieces[i], wanted);
    if (!common) continue;
    covered += common->num_elements();
    for (size_t j = i + 1; j < pieces.size() && first(pieces[j]) < end(pieces[i]); ++j) {
      const auto twice = topology::intersect(*common, pieces[j]);
      if (twice) {
        return Error{ErrorCode::checkpoint_malformed,
                     fmt::format("the elements {} are stored twice, in the pieces {} and {}", twice->to_string(),
                                 pieces[i].to_string(), pieces[j].to_string()),
                     "tensor " + tensor, "the parts do not belong together"};
      }
    }
  }
  const int64_t needed = wanted.num_elements();
  if (covered != needed) {
    return Error{
        ErrorCode::checkpoint_incomplete,
        fmt::format("{} of the {} elements of {} are in no piece", needed - covered, needed, wanted.to_string()),
        "tensor " + tensor, "a part is missing"};
  }
  return {};
}

Status check_cover(const TensorIndex& index, const std::vector<Catalog>& catalogs) {
  for (const auto& [name, info] : index) {
    std::vector<topology::Slice> pieces;
    for (const PieceRef& ref : info.pieces) pieces.push_back(catalogs[ref.catalog].pieces[ref.piece].slice);
    PENT_TRY(check_cover(name, topology::Slice::whole(info.shape), std::move(pieces)));
  }
  return {};
}

}  // namespace penteract::checkpoint
