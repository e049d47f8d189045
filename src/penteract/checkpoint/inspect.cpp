#include "penteract/checkpoint/inspect.h"

#include <fmt/format.h>

#include <filesystem>

#include "penteract/base/json.h"
#include "penteract/base/text.h"
#include "penteract/checkpoint/safetensors.h"
#include "penteract/checkpoint/step_directory.h"
#include "penteract/checkpoint/tensor_index.h"

namespace penteract::checkpoint {
namespace fs = std::filesystem;
namespace {

enum class Kind { none, safetensors, step, checkpoints };

Kind kind_of(const std::string& path) {
  std::error_code error;
  if (fs::is_regular_file(path, error)) return path.ends_with(".safetensors") ? Kind::safetensors : Kind::none;
  if (!fs::is_directory(path, error)) return Kind::none;
  if (fs::exists(fs::path(path) / kStateFileName, error)) return Kind::step;
  const auto steps = list_steps(path);
  return steps.ok() && !steps->empty() ? Kind::checkpoints : Kind::none;
}

// The end of a long name says more than its beginning.
std::string shorten(const std::string& name, size_t width) {
  return name.size() <= width ? name : ".." + name.substr(name.size() - width + 2);
}

constexpr size_t kNameWidth = 52;
constexpr size_t kShapeWidth = 20;

std::string dump(const Json& document) { return document.dump(2, ' ', false, Json::error_handler_t::replace); }

Result<Description> describe_safetensors(const std::string& path) {
  PENT_ASSIGN(const SafetensorsFile file, SafetensorsFile::open(path));
  Json document = {{"kind", "safetensors"},
                   {"path", path},
                   {"num_bytes", file.file().size_bytes()},
                   {"metadata", file.metadata()},
                   {"tensors", Json::array()}};
  std::vector<std::vector<std::string>> rows = {{"tensor", "dtype", "shape", "size"}};
  for (const TensorEntry& t : file.tensors()) {
    document["tensors"].push_back({{"name", t.name},
                                   {"dtype", dtype_name(t.dtype)},
                                   {"shape", t.shape},
                                   {"offset_bytes", t.offset_bytes},
                                   {"num_bytes", t.size_bytes}});
    rows.push_back({shorten(t.name, kNameWidth), std::string(dtype_name(t.dtype)),
                    shorten(shape_text(t.shape), kShapeWidth), format_bytes(t.size_bytes)});
  }
  std::string text = fmt::format("{}\nsafetensors, {} tensors, {}\n", path, file.tensors().size(),
                                 format_bytes(file.file().size_bytes()));
  for (const auto& [key, value] : file.metadata()) text += shorten(fmt::format("  {}: {}", key, value), 100) + "\n";
  return Description{dump(document), text + "\n" + format_table(rows)};
}

Result<Description> describe_step(const std::string& path) {
  PENT_ASSIGN(const StepContents step, read_step(path));
  PENT_ASSIGN(const TensorIndex index, index_tensors(step.catalogs));
  const SharedState& state = step.file.state;
  uint64_t total = 0;
  for (const PartRecord& part : step.file.parts) total += part.data_bytes + part.catalog_bytes;
  Json document = {
      {"kind", "checkpoint"},        {"path", path},       {"step", state.step},           {"tokens", state.tokens},
      {"samples", state.samples},    {"seed", state.seed}, {"num_ranks", state.num_ranks}, {"layout", state.layout},
      {"recipe", state.recipe_toml}, {"num_bytes", total}, {"tensors", Json::array()}};
  std::vector<std::vector<std::string>> rows = {{"tensor", "dtype", "shape", "pieces", "size"}};
  for (const auto& [name, info] : index) {
    Json pieces = Json::array();
    for (const PieceRef& ref : info.pieces) {
      const Catalog& catalog = step.catalogs[ref.catalog];
      const CatalogPiece& piece = catalog.pieces[ref.piece];
      pieces.push_back({{"rank", catalog.rank},
                        {"file", catalog.files[piece.file].name},
                        {"offset", piece.slice.offset},
                        {"size", piece.slice.size},
                        {"offset_bytes", piece.offset_bytes},
                        {"num_bytes", piece.size_bytes},
                        {"checksum", piece.checksum}});
    }
    const uint64_t bytes = tensor_bytes(info.shape, info.dtype).value_or(0);
    document["tensors"].push_back({{"name", name},
                                   {"dtype", dtype_name(info.dtype)},
                                   {"shape", info.shape},
                                   {"num_bytes", bytes},
                                   {"pieces", std::move(pieces)}});
    rows.push_back({shorten(name, kNameWidth), std::string(dtype_name(info.dtype)),
                    shorten(shape_text(info.shape), kShapeWidth), std::to_string(info.pieces.size()),
                    format_bytes(bytes)});
  }
  const std::string text = fmt::format(
      "{}\ncheckpoint of step {}: {} tokens, {} samples, seed {}\nwritten by {} ranks, {}\n{} tensors, {}\n\n", path,
      state.step, state.tokens, state.samples, state.seed, state.num_ranks, state.layout, index.size(),
      format_bytes(total));
  return Description{dump(document), text + format_table(rows)};
}

Result<Description> describe_checkpoints(const std::string& path) {
  PENT_ASSIGN(const std::vector<int64_t> steps, list_steps(path));
  Json document = {{"kind", "checkpoints"}, {"path", path}, {"steps", Json::array()}};
  std::vector<std::vector<std::string>> rows = {{"step", "ranks", "size", "state"}};
  for (const int64_t number : steps) {
    const std::string name = step_name(number);
    const auto step = read_step(join_path(path, name));
    if (!step.ok()) {
      const std::string problem = step.error().what;
      document["steps"].push_back(
          {{"name", name}, {"complete", false}, {"problem", step.error().culprit + ": " + problem}});
      const std::string file = fs::path(step.error().culprit).filename().string();
      rows.push_back({name, "", "", shorten(file + ": " + problem, 60)});
      continue;
    }
    uint64_t total = 0;
    for (const PartRecord& part : step->file.parts) total += part.data_bytes + part.catalog_bytes;
    const SharedState& state = step->file.state;
    document["steps"].push_back({{"name", name},
                                 {"complete", true},
                                 {"num_ranks", state.num_ranks},
                                 {"layout", state.layout},
                                 {"tokens", state.tokens},
                                 {"num_bytes", total}});
    rows.push_back({name, std::to_string(state.num_ranks), format_bytes(total), "complete"});
  }
  return Description{dump(document), path + "\n\n" + format_table(rows)};
}

}  // namespace

bool is_describable(const std::string& path) { return kind_of(path) != Kind::none; }

Result<Description> describe(const std::string& path) {
  switch (kind_of(path)) {
    case Kind::safetensors: return describe_safetensors(path);
    case Kind::step: return describe_step(path);
    case Kind::checkpoints: return describe_checkpoints(path);
    case Kind::none: break;
  }
  return Error{ErrorCode::checkpoint_missing,
               "is neither a step directory, nor a folder of steps, nor a safetensors file", path,
               "name one that exists"};
}

}  // namespace penteract::checkpoint
