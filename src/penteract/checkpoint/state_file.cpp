#include "penteract/checkpoint/state_file.h"

#include <fmt/format.h>

#include "penteract/base/hash.h"
#include "penteract/base/json.h"
#include "penteract/checkpoint/step_directory.h"

namespace penteract::checkpoint {
namespace {

constexpr const char* kFormat = "penteract-checkpoint";
constexpr int64_t kVersion = 1;
constexpr int64_t kMaxRanks = 1 << 24;
constexpr const char* kChecksum = "checksum";

// The one text of a document: sorted keys, two spaces. The checksum is that of this text without its own key.
std::string canonical(const Json& document) { return document.dump(2) + "\n"; }

std::string checksum_of(const Json& document) {
  Json bare = document;
  bare.erase(kChecksum);
  const std::string text = canonical(bare);
  return hash128_hex(text.data(), text.size());
}

// Reads typed fields; the first one that is missing or wrong is remembered.
class Fields {
 public:
  explicit Fields(const Json& object) : object_(object) {}
  const std::string& problem() const { return problem_; }

  int64_t count(const char* key, int64_t max = INT64_MAX) {
    const auto it = object_.find(key);
    if (it == object_.end() || !it->is_number_unsigned() || it->get<uint64_t>() > static_cast<uint64_t>(max)) {
      return fail<int64_t>(key, "a whole number in range");
    }
    return it->get<int64_t>();
  }
  std::string text(const char* key) {
    const auto it = object_.find(key);
    if (it == object_.end() || !it->is_string()) return fail<std::string>(key, "a string");
    return it->get<std::string>();
  }

 private:
  template <class T>
  T fail(const char* key, const char* what) {
    if (problem_.empty()) problem_ = fmt::format("key {} is not {}", key, what);
    return T{};
  }
  const Json& object_;
  std::string problem_;
};

}  // namespace

Result<std::string> encode_state(const StateFile& file) {
  const SharedState& s = file.state;
  Json document = {{"format", kFormat},        {"version", kVersion},   {"step", s.step},
                   {"tokens", s.tokens},       {"samples", s.samples},  {"seed", std::to_string(s.seed)},
                   {"num_ranks", s.num_ranks}, {"layout", s.layout},    {"recipe", s.recipe_toml},
                   {"extra", s.extra_json},    {"parts", Json::array()}};
  for (const PartRecord& part : file.parts) {
    document["parts"].push_back({{"rank", part.rank},
                                 {"catalog", catalog_name(part.rank)},
                                 {"catalog_bytes", part.catalog_bytes},
                                 {"catalog_checksum", part.catalog_checksum},
                                 {"data", data_name(part.rank)},
                                 {"data_bytes", part.data_bytes}});
  }
  try {
    document[kChecksum] = checksum_of(document);
    return canonical(document);
  } catch (const Json::exception&) {
    return Error{ErrorCode::invalid_argument, "recipe, layout or extra state is not UTF-8", kStateFileName,
                 "use paths and texts in UTF-8"};
  }
}

Result<StateFile> decode_state(std::string_view text, const std::string& culprit) {
  const auto damaged = [&](const std::string& what) {
    return Error{ErrorCode::checkpoint_damaged, what, culprit,
                 "the file was changed or cut short: use another copy or an older checkpoint"};
  };
  auto parsed = parse_json(text, culprit);
  if (!parsed.ok()) return damaged(parsed.error().what);
  const Json& document = *parsed;
  Fields fields(document);
  if (!document.is_object() || fields.text("format") != kFormat) return damaged("is no state file of a checkpoint");
  const int64_t version = fields.count("version");
  if (fields.problem().empty() && version != kVersion) {
    return Error{ErrorCode::checkpoint_malformed,
                 fmt::format("has version {}, this program reads {}", version, kVersion), culprit,
                 "read it with the penteract that wrote it"};
  }
  if (fields.text(kChecksum) != checksum_of(document) || canonical(document) != text) {
    return damaged("its bytes do not have the checksum in it");
  }
  StateFile file;
  SharedState& s = file.state;
  s.step = fields.count("step");
  s.tokens = fields.count("tokens");
  s.samples = fields.count("samples");
  const std::string seed = fields.text("seed");
  s.num_ranks = static_cast<int>(fields.count("num_ranks", kMaxRanks));
  s.layout = fields.text("layout");
  s.recipe_toml = fields.text("recipe");
  s.extra_json = fields.text("extra");
  std::string problem = fields.problem();
  try {
    if (problem.empty()) s.seed = std::stoull(seed);
  } catch (const std::exception&) {
    problem = "key seed is not a number";
  }
  const auto parts = document.find("parts");
  if (problem.empty() && (parts == document.end() || !parts->is_array() ||
                          parts->size() != static_cast<size_t>(s.num_ranks) || parts->empty())) {
    problem = fmt::format("it does not list one part for each of {} ranks", s.num_ranks);
  }
  for (int rank = 0; problem.empty() && rank < s.num_ranks; ++rank) {
    Fields part((*parts)[static_cast<size_t>(rank)]);
    PartRecord record{rank, static_cast<uint64_t>(part.count("catalog_bytes")), part.text("catalog_checksum"),
                      static_cast<uint64_t>(part.count("data_bytes"))};
    problem = part.problem();
    if (problem.empty() && (part.count("rank") != rank || part.text("catalog") != catalog_name(rank) ||
                            part.text("data") != data_name(rank))) {
      problem = fmt::format("part {} is not that of rank {}", rank, rank);
    }
    file.parts.push_back(std::move(record));
  }
  if (!problem.empty()) return Error{ErrorCode::checkpoint_malformed, problem, culprit, "use another checkpoint"};
  return file;
}

}  // namespace penteract::checkpoint
