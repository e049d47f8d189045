#include "penteract/checkpoint/step_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>

#include <algorithm>
#include <cerrno>

#include "penteract/base/check.h"
#include "penteract/base/file.h"
#include "penteract/base/hash.h"
#include "penteract/checkpoint/catalog.h"
#include "penteract/checkpoint/retention.h"
#include "penteract/checkpoint/safetensors.h"
#include "penteract/checkpoint/step_directory.h"
#include "penteract/checkpoint/tensor_index.h"

namespace penteract::checkpoint {
namespace {

struct Stored {
  const Piece* piece;
  Dtype dtype;
};

// The pieces with elements, larger element sizes first, which aligns them all.
Result<std::vector<Stored>> order_pieces(const std::vector<Piece>& pieces) {
  std::vector<Stored> stored;
  for (const Piece& piece : pieces) {
    const auto dtype = dtype_of(piece.data.scalar_type());
    if (!dtype) {
      return Error{ErrorCode::invalid_argument, fmt::format("has a dtype that is none of {}", dtype_names()),
                   "tensor " + piece.tensor, "cast it to one of these"};
    }
    PENT_CHECK(piece.data.is_contiguous() && piece.data.numel() == piece.slice.num_elements(), "{} {}: {} elements",
               piece.tensor, piece.slice.to_string(), piece.data.numel());
    PENT_CHECK(piece.slice.num_dims() == static_cast<int>(piece.global_shape.size()), "{}", piece.tensor);
    if (piece.data.numel() > 0) stored.push_back({&piece, *dtype});
  }
  std::ranges::stable_sort(stored, std::greater<>(), [](const Stored& s) { return dtype_bytes(s.dtype); });
  return stored;
}

// Puts `aside` in the place of `path` in one step where the file system can; what was at `path` is then at `aside`.
Status install(const std::string& aside, const std::string& path) {
  if (::renameat2(AT_FDCWD, aside.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE) == 0) return {};
  if (errno == EEXIST) {
    if (::renameat2(AT_FDCWD, aside.c_str(), AT_FDCWD, path.c_str(), RENAME_EXCHANGE) == 0) return {};
  }
  if (errno == EINVAL || errno == ENOSYS) {  // the file system has neither flag
    PENT_TRY(remove_tree(path));
    if (::rename(aside.c_str(), path.c_str()) == 0) return {};
  }
  return errno_error(ErrorCode::storage_write, path, "rename into");
}

}  // namespace

std::string temporary_directory(const std::string& checkpoints_dir, int64_t step) {
  return join_path(checkpoints_dir, step_name(step) + kTemporarySuffix);
}

Result<PartRecord> write_part(const std::string& dir, int64_t step, int rank, int num_ranks,
                              const std::vector<Piece>& pieces) {
  PENT_ASSIGN(const std::vector<Stored> stored, order_pieces(pieces));
  Catalog catalog{step, rank, num_ranks, {{data_name(rank), 0, 0, ""}}, {}};
  std::vector<TensorSpec> specs;
  for (const Stored& s : stored) {
    CatalogPiece piece{s.piece->tensor, s.dtype, s.piece->global_shape, s.piece->slice, 0, 0, 0, ""};
    specs.push_back({piece.name(), s.dtype, piece.slice.size});
    catalog.pieces.push_back(std::move(piece));
  }
  const std::map<std::string, std::string> metadata = {{"format", "penteract checkpoint part, version 1"}};
  PENT_ASSIGN(SafetensorsWriter writer,
              SafetensorsWriter::create(join_path(dir, data_name(rank)), std::move(specs), metadata));
  CatalogFile& file = catalog.files[0];
  file.header_bytes = writer.header_bytes();
  file.header_checksum = writer.header_checksum();
  for (size_t i = 0; i < stored.size(); ++i) {
    CatalogPiece& piece = catalog.pieces[i];
    const at::Tensor data = stored[i].piece->data.cpu();
    piece.offset_bytes = writer.offset_bytes();
    piece.size_bytes = data.nbytes();
    piece.checksum = hash128_hex(data.const_data_ptr(), data.nbytes());
    PENT_TRY(writer.append(data));
  }
  PENT_TRY(writer.close());
  file.size_bytes = writer.offset_bytes();

  const std::string bytes = encode_catalog(catalog);
  PENT_ASSIGN(FileWriter catalog_file, FileWriter::create(join_path(dir, catalog_name(rank))));
  PENT_TRY(catalog_file.write(bytes.data(), bytes.size()));
  PENT_TRY(catalog_file.sync());
  return PartRecord{rank, bytes.size(), hash128_hex(bytes.data(), bytes.size()), file.size_bytes};
}

StepTransaction::StepTransaction(std::string checkpoints_dir, int64_t step, std::vector<std::string> records_before)
    : checkpoints_dir_(std::move(checkpoints_dir)), step_(step), records_before_(std::move(records_before)) {}

Result<StepTransaction> StepTransaction::begin(const std::string& checkpoints_dir, int64_t step) {
  PENT_TRY(make_directories(checkpoints_dir));
  PENT_ASSIGN(std::vector<std::string> names, read_records(checkpoints_dir));
  StepTransaction transaction(checkpoints_dir, step, names);
  for (const std::string& name : names) PENT_TRY(remove_tree(join_path(checkpoints_dir, name + kTemporarySuffix)));
  const std::string temporary = temporary_directory(checkpoints_dir, step);
  PENT_TRY(remove_tree(temporary));
  std::erase(names, step_name(step));
  names.push_back(step_name(step));
  PENT_TRY(write_records(checkpoints_dir, names));
  if (Status made = make_directories(temporary); !made.ok()) {
    transaction.abandon();
    return made.take_error();
  }
  return transaction;
}

Status StepTransaction::commit(const SharedState& state, std::vector<PartRecord> parts) {
  const std::string temporary = temporary_directory(checkpoints_dir_, step_);
  const std::string path = join_path(checkpoints_dir_, step_name(step_));
  PENT_CHECK_EQ(state.step, step_);
  const StateFile file{state, std::move(parts)};
  PENT_CHECK_EQ(file.parts.size(), static_cast<size_t>(state.num_ranks));
  PENT_ASSIGN(const std::string text, encode_state(file));
  PENT_TRY(write_file_atomic(join_path(temporary, kStateFileName), text));
  // Reading back what will be committed finds a part that another rank wrote elsewhere, and state that nobody saved.
  PENT_ASSIGN(const StepContents written, read_step(temporary));
  PENT_ASSIGN(const TensorIndex index, index_tensors(written.catalogs));
  PENT_TRY(check_cover(index, written.catalogs));
  PENT_TRY(sync_directory(temporary));
  PENT_TRY(install(temporary, path));
  committed_ = true;
  PENT_TRY(sync_directory(checkpoints_dir_));
  PENT_TRY(remove_tree(temporary));
  return write_file_atomic(join_path(checkpoints_dir_, kLatestFileName), step_name(step_) + "\n");
}

void StepTransaction::abandon() {
  if (committed_) return;
  // The next begin() removes what this cannot.
  [[maybe_unused]] const Status removed = remove_tree(temporary_directory(checkpoints_dir_, step_));
  [[maybe_unused]] const Status written = write_records(checkpoints_dir_, records_before_);
}

}  // namespace penteract::checkpoint
