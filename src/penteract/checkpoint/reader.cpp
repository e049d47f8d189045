#include "penteract/checkpoint/reader.h"

#include <fmt/format.h>

#include <map>
#include <mutex>
#include <set>

#include "penteract/base/check.h"
#include "penteract/base/text.h"
#include "penteract/checkpoint/slice_io.h"
#include "penteract/checkpoint/step_directory.h"

namespace penteract::checkpoint {

struct Reader::State {
  std::string step_dir;
  StepContents contents;
  TensorIndex index;

  std::mutex mutex;
  std::map<std::string, std::unique_ptr<FileReader>> files;  // opened on first use
  std::set<std::pair<size_t, size_t>> verified;              // (catalog, piece)

  Result<const FileReader*> file(const std::string& name) {
    const std::lock_guard lock(mutex);
    auto& slot = files[name];
    if (!slot) {
      PENT_ASSIGN(FileReader opened, FileReader::open(join_path(step_dir, name)));
      slot = std::make_unique<FileReader>(std::move(opened));
    }
    return static_cast<const FileReader*>(slot.get());
  }
};

namespace {

Error mismatch_error(const std::string& step_dir, const std::string& tensor, const std::string& what,
                     const std::string& remedy) {
  return {ErrorCode::checkpoint_mismatch, what, fmt::format("{}, tensor {}", step_dir, tensor), remedy};
}

bool lies_inside(const topology::Slice& slice, const std::vector<int64_t>& shape) {
  if (slice.size.size() != shape.size() || slice.offset.size() != shape.size()) return false;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (slice.offset[d] < 0 || slice.size[d] < 0 || slice.size[d] > shape[d] ||
        slice.offset[d] > shape[d] - slice.size[d]) {
      return false;
    }
  }
  return true;
}

}  // namespace

Reader::Reader(std::unique_ptr<State> state) : state_(std::move(state)) {}
Reader::~Reader() = default;

Result<std::unique_ptr<Reader>> Reader::open(const std::string& step_dir) {
  auto state = std::make_unique<State>();
  state->step_dir = step_dir;
  PENT_ASSIGN(state->contents, read_step(step_dir));
  PENT_ASSIGN(state->index, index_tensors(state->contents.catalogs));
  return std::unique_ptr<Reader>(new Reader(std::move(state)));
}

const SharedState& Reader::state() const { return state_->contents.file.state; }
bool Reader::has(const std::string& tensor) const { return find(tensor) != nullptr; }

const TensorInfo* Reader::find(const std::string& tensor) const {
  const auto it = state_->index.find(tensor);
  return it == state_->index.end() ? nullptr : &it->second;
}

std::vector<TensorInfo> Reader::tensors() const {
  std::vector<TensorInfo> all;
  for (const auto& [name, info] : state_->index) all.push_back(info);
  return all;
}

Status Reader::read(const std::string& tensor, const topology::Slice& slice, const at::Tensor& out) const {
  const TensorInfo* info = find(tensor);
  if (info == nullptr) {
    std::vector<std::string> names;
    for (const auto& [name, unused] : state_->index) names.push_back(name);
    const std::string near = nearest_word(tensor, names);
    return mismatch_error(state_->step_dir, tensor, "the checkpoint holds no tensor of this name",
                          near.empty() ? "it is of another model" : fmt::format("the nearest it holds is {}", near));
  }
  if (!lies_inside(slice, info->shape)) {
    return mismatch_error(
        state_->step_dir, tensor,
        fmt::format("{} is wanted, the checkpoint holds the shape {}", slice.to_string(), shape_text(info->shape)),
        "it is of a model with other sizes");
  }
  const bool casts = out.scalar_type() != scalar_type(info->dtype);
  if (casts && !(is_floating(info->dtype) && out.is_floating_point())) {
    return mismatch_error(
        state_->step_dir, tensor,
        fmt::format("{} is wanted, the checkpoint holds {}", c10::toString(out.scalar_type()), dtype_name(info->dtype)),
        "it is of another model");
  }
  PENT_CHECK(out.numel() == slice.num_elements(), "{}: {} elements for {}", tensor, out.numel(), slice.to_string());
  if (slice.num_elements() == 0) return {};

  std::vector<PieceRef> refs;
  std::vector<topology::Slice> slices;
  for (const PieceRef& ref : info->pieces) {
    const topology::Slice& stored = state_->contents.catalogs[ref.catalog].pieces[ref.piece].slice;
    if (!topology::intersect(stored, slice)) continue;
    refs.push_back(ref);
    slices.push_back(stored);
  }
  PENT_TRY(check_cover(tensor, slice, slices));

  for (const PieceRef& ref : refs) {
    const Catalog& catalog = state_->contents.catalogs[ref.catalog];
    const CatalogPiece& piece = catalog.pieces[ref.piece];
    const std::pair key(ref.catalog, ref.piece);
    bool known = false;
    {
      const std::lock_guard lock(state_->mutex);
      known = state_->verified.contains(key);
    }
    const std::string& name = catalog.files[piece.file].name;
    PENT_ASSIGN(const FileReader* file, state_->file(name));
    Hasher128 hash;
    const auto part = topology::intersect(piece.slice, slice);
    PENT_TRY(
        read_box(*file, {piece.dtype, piece.slice, piece.offset_bytes}, *part, slice, out, known ? nullptr : &hash));
    if (known) continue;
    if (hash.hex() != piece.checksum) {
      return Error{ErrorCode::checkpoint_damaged,
                   fmt::format("the {} bytes from {} do not have their checksum", piece.size_bytes, piece.offset_bytes),
                   fmt::format("{}, {}", file->path(), piece.name()), "use another copy or an older checkpoint"};
    }
    const std::lock_guard lock(state_->mutex);
    state_->verified.insert(key);
  }
  return {};
}

}  // namespace penteract::checkpoint
