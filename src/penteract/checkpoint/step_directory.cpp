#include "penteract/checkpoint/step_directory.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "penteract/base/file.h"
#include "penteract/base/hash.h"

namespace penteract::checkpoint {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kStepPrefix = "step-";
constexpr uint64_t kMaxStateBytes = uint64_t{1} << 30;
constexpr const char* kUseOther = "use another copy or an older checkpoint";

Error incomplete(const std::string& path) { return {ErrorCode::checkpoint_incomplete, "is missing", path, kUseOther}; }

}  // namespace

std::string step_name(int64_t step) { return fmt::format("{}{:08}", kStepPrefix, step); }

std::optional<int64_t> parse_step_name(std::string_view name) {
  if (!name.starts_with(kStepPrefix)) return std::nullopt;
  const std::string_view digits = name.substr(kStepPrefix.size());
  int64_t step = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), step);
  if (error != std::errc() || step < 0 || step_name(step) != name) return std::nullopt;
  return step;
}

std::string catalog_name(int rank) { return fmt::format("rank-{:05}.catalog", rank); }
std::string data_name(int rank) { return fmt::format("rank-{:05}.safetensors", rank); }
std::string join_path(const std::string& folder, const std::string& name) { return (fs::path(folder) / name).string(); }

Result<std::vector<int64_t>> list_steps(const std::string& checkpoints_dir) {
  std::vector<int64_t> steps;
  std::error_code error;
  if (!fs::exists(checkpoints_dir, error) && !error) return steps;
  for (fs::directory_iterator it(checkpoints_dir, error), end; !error && it != end; it.increment(error)) {
    if (const auto step = parse_step_name(it->path().filename().string())) steps.push_back(*step);
  }
  if (error) {
    return Error{ErrorCode::file_unreadable, fmt::format("cannot list the folder: {}", error.message()),
                 checkpoints_dir, "check that it is a folder and that its permissions let you read it"};
  }
  std::ranges::sort(steps);
  return steps;
}

Result<StateFile> read_state(const std::string& step_dir) {
  std::error_code error;
  if (!fs::is_directory(step_dir, error)) {
    return Error{ErrorCode::checkpoint_missing, "is no folder", step_dir,
                 "name a step directory such as checkpoints/step-00000010"};
  }
  const std::string path = join_path(step_dir, kStateFileName);
  auto text = read_file(path, kMaxStateBytes);
  if (!text.ok() && text.error().code == ErrorCode::file_missing) return incomplete(path);
  if (!text.ok()) return text.take_error();
  return decode_state(*text, path);
}

Result<Catalog> read_part(const std::string& step_dir, const StateFile& state, int rank) {
  const PartRecord& part = state.parts.at(static_cast<size_t>(rank));
  const std::string path = join_path(step_dir, catalog_name(rank));
  auto bytes = read_file(path);
  if (!bytes.ok() && bytes.error().code == ErrorCode::file_missing) return incomplete(path);
  if (!bytes.ok()) return bytes.take_error();
  PENT_ASSIGN(Catalog catalog, decode_catalog(*bytes, path));
  if (catalog.step != state.state.step || catalog.rank != rank || catalog.num_ranks != state.state.num_ranks) {
    return Error{ErrorCode::checkpoint_damaged,
                 fmt::format("is of step {}, rank {} of {}; expected step {}, rank {} of {}", catalog.step,
                             catalog.rank, catalog.num_ranks, state.state.step, rank, state.state.num_ranks),
                 path, "the file belongs elsewhere: " + std::string(kUseOther)};
  }
  if (hash128_hex(bytes->data(), bytes->size()) != part.catalog_checksum) {
    return Error{ErrorCode::checkpoint_damaged, "is whole, but not the one that state.json lists", path,
                 "the file comes from another run or save: " + std::string(kUseOther)};
  }
  for (const CatalogFile& file : catalog.files) {
    const std::string data = join_path(step_dir, file.name);
    auto reader = FileReader::open(data);
    if (!reader.ok() && reader.error().code == ErrorCode::file_missing) return incomplete(data);
    if (!reader.ok()) return reader.take_error();
    if (reader->size_bytes() != file.size_bytes) {
      return Error{ErrorCode::checkpoint_damaged,
                   fmt::format("has {} bytes, {} were written", reader->size_bytes(), file.size_bytes), data,
                   "the file was cut short or changed: " + std::string(kUseOther)};
    }
  }
  return catalog;
}

Result<StepContents> read_step(const std::string& step_dir) {
  StepContents contents;
  PENT_ASSIGN(contents.file, read_state(step_dir));
  for (int rank = 0; rank < contents.file.state.num_ranks; ++rank) {
    PENT_ASSIGN(Catalog catalog, read_part(step_dir, contents.file, rank));
    contents.catalogs.push_back(std::move(catalog));
  }
  return contents;
}

}  // namespace penteract::checkpoint
