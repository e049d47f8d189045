#include "penteract/base/json_config.h"

#include "penteract/base/json.h"

namespace penteract {
namespace {

constexpr uint64_t kMaxConfigBytes = uint64_t{16} << 20;

// REQUIRES: not null. The depth is bounded by parse_json.
ConfigValue convert(const Json& json, const std::string& where) {
  ConfigValue value;
  value.where = where;
  if (json.is_boolean()) {
    value.kind = ConfigValue::Kind::boolean;
    value.boolean = json.get<bool>();
  } else if (json.is_number_integer() && !(json.is_number_unsigned() && json.get<uint64_t>() > INT64_MAX)) {
    value.kind = ConfigValue::Kind::integer;
    value.integer = json.get<int64_t>();
  } else if (json.is_number()) {
    value.kind = ConfigValue::Kind::floating;
    value.floating = json.get<double>();
  } else if (json.is_string()) {
    value.kind = ConfigValue::Kind::string;
    value.string = json.get<std::string>();
  } else if (json.is_array()) {
    value.kind = ConfigValue::Kind::list;
    for (const auto& item : json) {
      if (!item.is_null()) value.items.push_back(convert(item, where));
    }
  } else {
    value.kind = ConfigValue::Kind::table;
    for (const auto& [key, item] : json.items()) {
      if (!item.is_null()) value.fields.emplace(key, convert(item, where));
    }
  }
  return value;
}

}  // namespace

Result<ConfigTable> read_json_config(const std::string& path) {
  PENT_ASSIGN(const Json json, read_json(path, kMaxConfigBytes));
  if (!json.is_object())
    return Error{ErrorCode::file_malformed, "is no JSON object", path, "name a config.json of Hugging Face"};
  return ConfigTable("", convert(json, path).fields);
}

}  // namespace penteract
