#include "penteract/data/documents.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "penteract/base/check.h"
#include "penteract/base/json.h"
#include "penteract/base/text.h"

namespace penteract::data {
namespace {

constexpr size_t kReadBytes = 1 << 20;
constexpr size_t kMaxLineBytes = size_t{1} << 30;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

bool exists(const std::string& path) {
  std::error_code ec;
  return std::filesystem::exists(path, ec);
}

Error missing(const std::string& path) {
  return {ErrorCode::dataset_missing, "is not there", path,
          "name a text file, a .jsonl file, or the prefix of a .bin/.idx pair; relative paths start at the working "
          "directory"};
}

std::string keys_of(const Json& object) {
  std::string keys;
  for (const auto& [key, value] : object.items()) {
    if (keys.size() > 200) return keys + ", …";
    keys += fmt::format("{}\"{}\"", keys.empty() ? "" : ", ", key);
  }
  return keys.empty() ? "none" : keys;
}

}  // namespace

Result<SourceKind> source_kind(const std::string& path) {
  if (path.ends_with(".parquet")) {
    return Error{ErrorCode::recipe_unsupported, "Parquet ingestion is not supported", path,
                 "convert it to JSON lines with a text key"};
  }
  if (path.ends_with(".bin") || path.ends_with(".idx")) return SourceKind::dataset;
  if (!exists(path)) {
    if (exists(path + ".idx") || exists(path + ".bin")) return SourceKind::dataset;
    return missing(path);
  }
  if (path.ends_with(".jsonl") || path.ends_with(".json")) return SourceKind::jsonl;
  return SourceKind::text;
}

bool is_blank(std::string_view text) { return text.find_first_not_of(" \t\n\r\v\f") == std::string_view::npos; }

Error DocumentReader::malformed(const std::string& what) const {
  return {ErrorCode::text_malformed, what, fmt::format("{}:{}", file_.path(), line_),
          "repair the line, or make a dataset of the file with penteract data build --skip-malformed, which counts bad "
          "lines"};
}

Result<DocumentReader> DocumentReader::open(const std::string& path, SourceKind kind, const Options& options) {
  PENT_CHECK(kind != SourceKind::dataset, "{} has no text", path);
  auto file = FileReader::open(path);
  if (file.ok()) return DocumentReader(std::move(*file), kind, options);
  if (file.error().code == ErrorCode::file_missing) return missing(path);
  return file.take_error();
}

Result<bool> DocumentReader::next(std::string& document) {
  if (kind_ == SourceKind::text) {
    if (line_++ > 0) return false;
    document.resize(file_.size_bytes());
    PENT_TRY(file_.read_at(0, document.data(), document.size()));
    read_at_ = file_.size_bytes();
    if (document.starts_with(kByteOrderMark)) document.erase(0, kByteOrderMark.size());
    const bool blank = is_blank(document);
    ++(blank ? counts_.empty_documents : counts_.documents);
    return !blank;
  }
  std::string line;
  while (true) {
    PENT_ASSIGN(const bool more, next_line(line));
    if (!more) return false;
    if (is_blank(line)) {
      ++counts_.empty_documents;
      continue;
    }
    Status status = text_of_line(line, document);
    if (!status.ok()) {
      if (!options_.skip_malformed) return status.take_error();
      ++counts_.malformed_lines;
    } else if (is_blank(document)) {
      ++counts_.empty_documents;
    } else {
      ++counts_.documents;
      return true;
    }
  }
}

Result<bool> DocumentReader::next_line(std::string& line) {
  size_t searched = buffer_at_;
  size_t end = 0;
  while ((end = buffer_.find('\n', searched)) == std::string::npos) {
    buffer_.erase(0, buffer_at_);
    buffer_at_ = 0;
    searched = buffer_.size();
    const auto more = static_cast<size_t>(std::min<uint64_t>(kReadBytes, file_.size_bytes() - read_at_));
    if (more == 0) break;
    if (searched > kMaxLineBytes) {
      ++line_;
      return malformed(fmt::format("has a line longer than {}", format_bytes(kMaxLineBytes)));
    }
    buffer_.resize(searched + more);
    PENT_TRY(file_.read_at(read_at_, buffer_.data() + searched, more));
    if (read_at_ == 0 && buffer_.starts_with(kByteOrderMark)) {
      buffer_.erase(0, kByteOrderMark.size());
    }
    read_at_ += more;
  }
  ++line_;
  if (end == std::string::npos) {  // the last line, without its end
    if (buffer_.empty()) return false;
    line = std::move(buffer_);
    buffer_.clear();
    return true;
  }
  line.assign(buffer_, buffer_at_, end - buffer_at_);
  buffer_at_ = end + 1;
  return true;
}

Status DocumentReader::text_of_line(const std::string& line, std::string& document) const {
  auto json = parse_json(line, "");
  if (!json.ok()) return malformed(json.error().what);
  if (!json->is_object()) return malformed("is no JSON object: one object a line is read");
  const auto text = json->find(options_.text_key);
  if (text == json->end()) {
    return malformed(fmt::format("has no key \"{}\"; its keys: {}", options_.text_key, keys_of(*json)));
  }
  if (!text->is_string()) return malformed(fmt::format("\"{}\" is no text", options_.text_key));
  document = text->get<std::string>();
  return {};
}

}  // namespace penteract::data
