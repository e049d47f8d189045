#include "penteract/families/common/rope_keys.h"

#include <fmt/format.h>

#include <optional>

namespace penteract::families::common {
namespace {

constexpr const char* kTables[] = {"rope_parameters", "rope_scaling"};

struct Rope {
  std::optional<double> theta;
  spec::Llama3Rope scaling;
};

Status read_theta(ConfigTable& t, std::optional<double>& theta) {
  if (!t.has("rope_theta")) {
    t.find("rope_theta");
    return {};
  }
  double value = 0;
  PENT_TRY(t.get("rope_theta", value, 1, 1e15));
  theta = value;
  return {};
}

// One of the nested tables.
Result<Rope> read_table(ConfigTable t, bool llama3) {
  Rope rope;
  PENT_TRY(read_theta(t, rope.theta));
  std::string type = "default", older = type;
  PENT_TRY(t.get("rope_type", type));
  PENT_TRY(t.get("type", older));
  if (t.has("type") && t.has("rope_type") && type != older) {
    return t.error("type", ErrorCode::model_key, fmt::format("is \"{}\", but rope_type is \"{}\"", older, type),
                   "remove one of them");
  }
  if (t.has("type")) type = older;
  double partial = 1;
  PENT_TRY(t.get("partial_rotary_factor", partial, 0, 1));
  if (partial != 1)
    return t.error("partial_rotary_factor", ErrorCode::model_key, fmt::format("is {}, only 1 is supported", partial),
                   "");
  if (type == "llama3" && llama3) {
    for (const char* key : {"factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"})
      PENT_TRY(t.require(key));
    spec::Llama3Rope& s = rope.scaling;
    PENT_TRY(t.get("factor", s.factor, 1, 1e6));
    PENT_TRY(t.get("low_freq_factor", s.low_freq_factor, 1e-6, 1e6));
    PENT_TRY(t.get("high_freq_factor", s.high_freq_factor, 1e-6, 1e6));
    PENT_TRY(t.get("original_max_position_embeddings", s.original_max_position_embeddings, 1, int64_t{1} << 31));
    if (s.high_freq_factor <= s.low_freq_factor) {
      return t.error("high_freq_factor", ErrorCode::model_key,
                     fmt::format("is {}, not above low_freq_factor = {}", s.high_freq_factor, s.low_freq_factor), "");
    }
  } else if (type != "default") {
    return t.error(t.has("rope_type") ? "rope_type" : "type", ErrorCode::model_key,
                   fmt::format("is \"{}\", only {} is supported for this family", type,
                               llama3 ? "\"default\" or \"llama3\"" : "\"default\""),
                   "");
  }
  if (const auto unread = t.unread(); !unread.empty()) {
    return t.error(unread[0], ErrorCode::model_key, fmt::format("is not used by rope_type \"{}\"", type),
                   "remove it, or give the rope_type that it belongs to");
  }
  return rope;
}

}  // namespace

Status read_rope(ConfigTable& t, spec::ModelSpec& m, bool llama3) {
  std::optional<Rope> seen;
  std::optional<double> theta;
  PENT_TRY(read_theta(t, theta));
  for (const char* key : kTables) {
    const ConfigValue* value = t.find(key);
    if (value == nullptr) continue;
    if (value->kind != ConfigValue::Kind::table)
      return t.error(key, ErrorCode::recipe_type, fmt::format("is {}, expected a table", value->kind_name()), "");
    PENT_ASSIGN(const Rope rope,
                read_table(ConfigTable(t.name().empty() ? key : t.name() + "." + key, value->fields), llama3));
    if (seen && seen->scaling != rope.scaling) {
      return t.error(key, ErrorCode::model_key, "disagrees with rope_parameters about the scaling",
                     "remove one of the two");
    }
    if (rope.theta && theta && *rope.theta != *theta) {
      return t.error(key, ErrorCode::model_key,
                     fmt::format("says rope_theta = {}, another key says {}", *rope.theta, *theta),
                     "remove one of the two");
    }
    if (rope.theta) theta = rope.theta;
    seen = rope;
  }
  if (theta) m.rope_theta = *theta;
  if (seen) m.llama3_rope = seen->scaling;
  return {};
}

bool has_rope_theta(const ConfigTable& t) {
  if (t.has("rope_theta")) return true;
  for (const char* key : kTables) {
    const auto it = t.values().find(key);
    if (it == t.values().end()) continue;
    // What is no table is read_rope's to complain about.
    if (it->second.kind != ConfigValue::Kind::table || it->second.fields.count("rope_theta")) return true;
  }
  return false;
}

std::string write_rope(const spec::ModelSpec& m) {
  std::string text = fmt::format("rope_theta = {}\n", m.rope_theta);
  const spec::Llama3Rope& s = m.llama3_rope;
  if (s != spec::Llama3Rope{}) {
    text += fmt::format(
        "rope_scaling = {{ rope_type = \"llama3\", factor = {}, low_freq_factor = {}, high_freq_factor = {}, "
        "original_max_position_embeddings = {} }}\n",
        s.factor, s.low_freq_factor, s.high_freq_factor, s.original_max_position_embeddings);
  }
  return text;
}

}  // namespace penteract::families::common
