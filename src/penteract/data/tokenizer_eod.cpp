// eod_id of tokenizer.h.
#include <fmt/format.h>

#include <filesystem>

#include "penteract/base/file.h"
#include "penteract/base/json.h"
#include "penteract/data/tokenizer.h"

namespace penteract::data {
namespace {

constexpr const char* kUsual = "<|endoftext|>";
constexpr const char* kRemedy = "repair or remove the file, or name the token: data.eod (--eod)";
constexpr uint64_t kMaxConfigBytes = uint64_t{1} << 26;

// eos_token of the file, a text or an object with `content`; "" where it has none or there is no file.
Result<std::string> configured_eos(const std::string& path) {
  auto json = read_json(path, kMaxConfigBytes);
  if (!json.ok()) {
    if (json.error().code == ErrorCode::file_missing) return std::string();
    return json.take_error();
  }
  if (!json->is_object()) return Error{ErrorCode::tokenizer_malformed, "is no JSON object", path, kRemedy};
  const auto eos = json->find("eos_token");
  if (eos == json->end() || eos->is_null()) return std::string();
  const Json* content = &*eos;
  if (eos->is_object() && eos->contains("content")) content = &(*eos)["content"];
  if (!content->is_string()) return Error{ErrorCode::tokenizer_malformed, "eos_token is no text", path, kRemedy};
  return content->get<std::string>();
}

}  // namespace

Result<int32_t> eod_id(const Tokenizer& tokenizer, const std::string& path, const std::string& eod) {
  std::string name = eod, said_by = "data.eod";
  if (name.empty()) {
    std::filesystem::path at(path);
    std::error_code ec;
    if (!std::filesystem::is_directory(at, ec)) at = at.parent_path();
    said_by = (at / "tokenizer_config.json").string();
    PENT_ASSIGN(name, configured_eos(said_by));
  }
  if (name.empty()) {
    const auto usual = tokenizer.token_id(kUsual);
    if (usual.has_value()) return *usual;
    return Error{
        ErrorCode::tokenizer_vocab,
        fmt::format("no end-of-document token: there is no eos_token in a tokenizer_config.json beside it, and "
                    "it has no {}",
                    kUsual),
        path, "name the token: data.eod (--eod)"};
  }
  const auto id = tokenizer.token_id(name);
  if (id.has_value()) return *id;
  return Error{ErrorCode::tokenizer_vocab,
               fmt::format("has no token \"{}\", the end-of-document token that {} names", name, said_by), path,
               "set data.eod (--eod) to a token of this tokenizer"};
}

}  // namespace penteract::data
