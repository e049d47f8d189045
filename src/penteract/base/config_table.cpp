#include "penteract/base/config_table.h"

#include <fmt/format.h>

#include <cmath>

#include "penteract/base/text.h"

namespace penteract {
namespace {
// Bounds from here on only keep numbers representable; nobody wants to read them.
constexpr int64_t kUnbounded = int64_t{1} << 30;
constexpr const char* kInRange = "write a number in that range";

std::string dotted(const std::string& section, const std::string& key) {
  return section.empty() ? key : section + "." + key;
}
}  // namespace

const char* ConfigValue::kind_name() const {
  switch (kind) {
    case Kind::boolean: return "a boolean";
    case Kind::integer: return "a whole number";
    case Kind::floating: return "a number";
    case Kind::string: return "a text";
    case Kind::list: return "a list";
    case Kind::table: return "a table";
  }
  return "a value";
}

const ConfigValue* ConfigTable::find(const std::string& key) {
  asked_.insert(key);
  const auto it = values_.find(key);
  return it == values_.end() ? nullptr : &it->second;
}

Error ConfigTable::error(const std::string& key, ErrorCode code, std::string what, std::string remedy) const {
  const auto it = values_.find(key);
  const std::string full = dotted(name_, key);
  // A value of the command line says its key itself.
  const bool named = it == values_.end() || it->second.where.ends_with(full);
  const std::string culprit = it == values_.end() ? full
                              : named             ? it->second.where
                                                  : fmt::format("{}: {}", it->second.where, full);
  return {code, std::move(what), culprit, std::move(remedy)};
}

Error ConfigTable::type_error(const std::string& key, const ConfigValue& value, const std::string& expected) const {
  return error(key, ErrorCode::recipe_type, fmt::format("is {}, expected {}", value.kind_name(), expected),
               fmt::format("write {} after {} =", expected, key));
}

Status ConfigTable::get(const std::string& key, bool& out) {
  const ConfigValue* v = find(key);
  if (!v) return {};
  if (v->kind != ConfigValue::Kind::boolean) return type_error(key, *v, "true or false");
  out = v->boolean;
  return {};
}

Status ConfigTable::get(const std::string& key, std::string& out) {
  const ConfigValue* v = find(key);
  if (!v) return {};
  if (v->kind != ConfigValue::Kind::string) return type_error(key, *v, "a text in quotes");
  out = v->string;
  return {};
}

Status ConfigTable::get(const std::string& key, int64_t& out, int64_t min, int64_t max) {
  const ConfigValue* v = find(key);
  if (!v) return {};
  if (v->kind != ConfigValue::Kind::integer) return type_error(key, *v, "a whole number");
  if (v->integer < min || v->integer > max) {
    return error(key, ErrorCode::recipe_range,
                 v->integer < min && max >= kUnbounded ? fmt::format("is {}, expected at least {}", v->integer, min)
                                                       : fmt::format("is {}, expected {} to {}", v->integer, min, max),
                 kInRange);
  }
  out = v->integer;
  return {};
}

Status ConfigTable::get(const std::string& key, int& out, int min, int max) {
  int64_t wide = out;
  PENT_TRY(get(key, wide, min, max));
  out = static_cast<int>(wide);
  return {};
}

Status ConfigTable::get(const std::string& key, double& out, double min, double max) {
  const ConfigValue* v = find(key);
  if (!v) return {};
  double value = 0;
  if (v->kind == ConfigValue::Kind::integer) value = static_cast<double>(v->integer);
  else if (v->kind == ConfigValue::Kind::floating) value = v->floating;
  else return type_error(key, *v, "a number");
  if (!std::isfinite(value) || value < min || value > max) {
    return error(key, ErrorCode::recipe_range, fmt::format("is {}, expected {} to {}", value, min, max), kInRange);
  }
  out = value;
  return {};
}

Status ConfigTable::get(const std::string& key, std::vector<std::string>& out) {
  const ConfigValue* v = find(key);
  if (!v) return {};
  if (v->kind != ConfigValue::Kind::list) return type_error(key, *v, "a list of texts");
  std::vector<std::string> values;
  for (const auto& item : v->items) {
    if (item.kind != ConfigValue::Kind::string) return type_error(key, item, "texts in the list");
    values.push_back(item.string);
  }
  out = std::move(values);
  return {};
}

Status ConfigTable::get(const std::string& key, std::vector<double>& out) {
  const ConfigValue* v = find(key);
  if (!v) return {};
  if (v->kind != ConfigValue::Kind::list) return type_error(key, *v, "a list of numbers");
  std::vector<double> values;
  for (const auto& item : v->items) {
    if (item.kind == ConfigValue::Kind::integer) values.push_back(static_cast<double>(item.integer));
    else if (item.kind == ConfigValue::Kind::floating) values.push_back(item.floating);
    else return type_error(key, item, "numbers in the list");
  }
  out = std::move(values);
  return {};
}

Status ConfigTable::require(const std::string& key) {
  if (has(key)) return {};
  asked_.insert(key);
  return Error{ErrorCode::recipe_missing, "is not given", dotted(name_, key),
               name_.empty() ? "add it" : fmt::format("add {} to [{}]", key, name_)};
}

std::vector<std::string> ConfigTable::unread() const {
  std::vector<std::string> keys;
  for (const auto& [key, value] : values_) {
    if (!asked_.count(key)) keys.push_back(key);
  }
  return keys;
}

ConfigTable& ConfigDocument::section(const std::string& name) {
  return sections_.try_emplace(name, name, std::map<std::string, ConfigValue>{}).first->second;
}

void ConfigDocument::add(std::string name, std::map<std::string, ConfigValue> values) {
  sections_[name] = ConfigTable(name, std::move(values));
}

std::map<std::string, std::string> ConfigDocument::flatten(
    const std::function<std::string(const ConfigValue&)>& text) const {
  std::map<std::string, std::string> out;
  for (const auto& [name, table] : sections_) {
    for (const auto& [key, value] : table.values()) out[dotted(name, key)] = text(value);
  }
  return out;
}

Status ConfigDocument::finish() const {
  std::vector<std::string> known_sections;
  for (const auto& [name, table] : sections_) {
    if (!table.asked().empty()) known_sections.push_back(name);
  }
  for (const auto& [name, table] : sections_) {
    for (const auto& key : table.unread()) {
      const auto near_section = table.asked().empty() ? nearest_word(name, known_sections) : std::string();
      if (!near_section.empty()) {
        return table.error(key, ErrorCode::recipe_key, fmt::format("the section [{}] is not known", name),
                           fmt::format("did you mean [{}]?", near_section));
      }
      for (const auto& other : known_sections) {
        if (other != name && sections_.at(other).asked().count(key)) {
          return table.error(key, ErrorCode::recipe_key, fmt::format("unknown key; {} belongs in [{}]", key, other),
                             fmt::format("move it to [{}]", other));
        }
      }
      const std::vector<std::string> candidates(table.asked().begin(), table.asked().end());
      if (candidates.empty()) {
        return table.error(key, ErrorCode::recipe_key,
                           fmt::format("the section [{}] is not known, or unused in this run", name), "remove it");
      }
      const auto near = nearest_word(key, candidates);
      return table.error(key, ErrorCode::recipe_key, "unknown key",
                         near.empty() ? "remove it" : fmt::format("did you mean \"{}\"?", near));
    }
  }
  return {};
}

}  // namespace penteract
