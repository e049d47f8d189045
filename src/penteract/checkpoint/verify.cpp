#include "penteract/checkpoint/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "penteract/base/json.h"
#include "penteract/base/text.h"
#include "penteract/checkpoint/safetensors.h"
#include "penteract/checkpoint/slice_io.h"
#include "penteract/checkpoint/step_directory.h"
#include "penteract/checkpoint/tensor_index.h"

namespace penteract::checkpoint {
namespace {

Error damaged(const std::string& culprit, const std::string& what) {
  return {ErrorCode::checkpoint_damaged, what, culprit, "use another copy or an older checkpoint"};
}

// Whether a folder without state.json is what is left of a step, by its name or by its parts.
bool is_of_a_step(const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::path path = fs::absolute(folder, error).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  if (parse_step_name(path.filename().string())) return true;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.starts_with("rank-") && (name.ends_with(".catalog") || name.ends_with(".safetensors"))) return true;
  }
  return false;
}

// One data file: the header against its checksum and against the catalog, then every piece.
void verify_file(const std::string& step_dir, const Catalog& catalog, uint32_t file_index, VerifyReport& report) {
  const CatalogFile& listed = catalog.files[file_index];
  const std::string path = join_path(step_dir, listed.name);
  auto reader = FileReader::open(path);
  if (!reader.ok()) {
    report.problems.push_back(reader.take_error());
    return;
  }
  Hasher128 header_hash;
  if (Status read = hash_range(*reader, 0, listed.header_bytes, header_hash); !read.ok()) {
    report.problems.push_back(read.take_error());
    return;
  }
  report.num_bytes += listed.header_bytes;
  std::map<std::string, TensorEntry> entries;
  if (header_hash.hex() != listed.header_checksum) {
    report.problems.push_back(damaged(path, "its header does not have the checksum in the catalog"));
  } else if (auto opened = SafetensorsFile::open(path); !opened.ok()) {
    report.problems.push_back(opened.take_error());
  } else {
    for (const TensorEntry& entry : opened->tensors()) entries[entry.name] = entry;
    const auto of_this_file = std::ranges::count(catalog.pieces, file_index, &CatalogPiece::file);
    if (static_cast<size_t>(of_this_file) != entries.size()) {
      report.problems.push_back(
          damaged(path, fmt::format("holds {} tensors, its catalog lists {}", entries.size(), of_this_file)));
    }
    for (const CatalogPiece& piece : catalog.pieces) {
      if (piece.file != file_index) continue;
      const auto it = entries.find(piece.name());
      if (it == entries.end() || it->second.offset_bytes != piece.offset_bytes ||
          it->second.size_bytes != piece.size_bytes || it->second.dtype != piece.dtype ||
          it->second.shape != piece.slice.size) {
        report.problems.push_back(damaged(path, fmt::format("does not hold {} as its catalog says", piece.name())));
      }
    }
  }
  for (const CatalogPiece& piece : catalog.pieces) {
    if (piece.file != file_index) continue;
    Hasher128 hash;
    if (Status read = hash_range(*reader, piece.offset_bytes, piece.size_bytes, hash); !read.ok()) {
      report.problems.push_back(read.take_error());
      continue;
    }
    ++report.num_pieces;
    report.num_bytes += piece.size_bytes;
    if (hash.hex() != piece.checksum) {
      report.problems.push_back(damaged(
          fmt::format("{}, {}", path, piece.name()),
          fmt::format("the {} bytes from {} do not have their checksum", piece.size_bytes, piece.offset_bytes)));
    }
  }
}

}  // namespace

bool VerifyReport::incomplete() const {
  return std::ranges::any_of(problems, [](const Error& e) { return e.code == ErrorCode::checkpoint_incomplete; });
}

std::string VerifyReport::text() const {
  std::string out = fmt::format("{}: {}\n  step {}, {} parts, {} tensors in {} pieces, {} read\n", step_dir,
                                ok() ? "every byte is as it was written" : fmt::format("{} problems", problems.size()),
                                step < 0 ? "unknown" : std::to_string(step), num_parts, num_tensors, num_pieces,
                                format_bytes(num_bytes));
  for (const Error& problem : problems) out += fmt::format("  {}: {}\n", problem.culprit, problem.what);
  return out;
}

std::string VerifyReport::json() const {
  Json document = {{"path", step_dir},          {"ok", ok()},
                   {"num_parts", num_parts},    {"num_tensors", num_tensors},
                   {"num_pieces", num_pieces},  {"num_bytes", num_bytes},
                   {"problems", Json::array()}, {"step", step < 0 ? Json() : Json(step)}};
  for (const Error& problem : problems) {
    document["problems"].push_back(
        {{"error", error_name(problem.code)}, {"culprit", problem.culprit}, {"what", problem.what}});
  }
  return document.dump(2, ' ', false, Json::error_handler_t::replace);
}

Result<VerifyReport> verify(const std::string& step_dir) {
  VerifyReport report;
  report.step_dir = step_dir;
  auto state = read_state(step_dir);
  if (!state.ok()) {
    if (state.error().code == ErrorCode::checkpoint_missing) return state.take_error();
    if (state.error().code == ErrorCode::checkpoint_incomplete && !is_of_a_step(step_dir)) {
      return Error{ErrorCode::checkpoint_missing, "is no checkpoint: it holds neither state.json nor parts", step_dir,
                   "name a run directory, a folder of steps or a step such as checkpoints/step-00000010"};
    }
    report.problems.push_back(state.take_error());
    return report;
  }
  report.step = state->state.step;
  std::vector<Catalog> catalogs;
  for (const PartRecord& part : state->parts) {
    auto catalog = read_part(step_dir, *state, part.rank);
    if (!catalog.ok()) {
      report.problems.push_back(catalog.take_error());
      continue;
    }
    ++report.num_parts;
    report.num_bytes += part.catalog_bytes;
    for (uint32_t i = 0; i < catalog->files.size(); ++i) verify_file(step_dir, *catalog, i, report);
    catalogs.push_back(std::move(catalog).value());
  }
  auto index = index_tensors(catalogs);
  if (!index.ok()) {
    report.problems.push_back(index.take_error());
    return report;
  }
  report.num_tensors = static_cast<int64_t>(index->size());
  // With a part missing, every tensor it held would be named: the part is what to say.
  if (catalogs.size() == state->parts.size()) {
    if (Status cover = check_cover(*index, catalogs); !cover.ok()) report.problems.push_back(cover.take_error());
  }
  return report;
}

}  // namespace penteract::checkpoint
