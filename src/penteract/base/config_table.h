// A table of configuration keys that knows where each value stands and which keys were asked for, so that a key nobody
// reads is an error with its file, line and nearest neighbour. Filled from TOML (toml.h).
// Errors: recipe_type, recipe_range, recipe_missing, recipe_key. Thread-safety: one thread's.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "penteract/base/result.h"

namespace penteract {

struct ConfigValue {
  enum class Kind { boolean, integer, floating, string, list, table };
  Kind kind = Kind::boolean;
  bool boolean = false;
  int64_t integer = 0;
  double floating = 0;
  std::string string;
  std::vector<ConfigValue> items;             // list
  std::map<std::string, ConfigValue> fields;  // table
  std::string where;                          // "recipe.toml:12" or "--set run.dir"

  const char* kind_name() const;
};

class ConfigTable {
 public:
  ConfigTable() = default;
  ConfigTable(std::string name, std::map<std::string, ConfigValue> values)
      : name_(std::move(name)), values_(std::move(values)) {}

  const std::string& name() const { return name_; }
  bool has(const std::string& key) const { return values_.count(key) != 0; }

  // The value of a key where it is given, else null. Counts as asked for.
  const ConfigValue* find(const std::string& key);

  // Each sets `out` where the key is given and leaves it otherwise. Numbers outside [min, max] are recipe_range.
  Status get(const std::string& key, bool& out);
  Status get(const std::string& key, std::string& out);
  Status get(const std::string& key, int64_t& out, int64_t min, int64_t max = INT64_MAX);
  Status get(const std::string& key, int& out, int min, int max = INT32_MAX);
  Status get(const std::string& key, double& out, double min, double max);
  Status get(const std::string& key, std::vector<std::string>& out);
  Status get(const std::string& key, std::vector<double>& out);

  // recipe_missing where the key is absent.
  Status require(const std::string& key);

  // An error about a key (given or not), with the place where it stands.
  Error error(const std::string& key, ErrorCode code, std::string what, std::string remedy) const;

  const std::map<std::string, ConfigValue>& values() const { return values_; }
  const std::set<std::string>& asked() const { return asked_; }
  // The keys given that nobody asked for.
  std::vector<std::string> unread() const;

 private:
  Error type_error(const std::string& key, const ConfigValue& value, const std::string& expected) const;

  std::string name_;
  std::map<std::string, ConfigValue> values_;
  std::set<std::string> asked_;
};

// The sections of a TOML document.
class ConfigDocument {
 public:
  explicit ConfigDocument(std::string origin) : origin_(std::move(origin)) {}
  const std::string& origin() const { return origin_; }
  // The section; an empty one where the document has none.
  ConfigTable& section(const std::string& name);
  void add(std::string name, std::map<std::string, ConfigValue> values);
  // "section.key" -> text of the value.
  std::map<std::string, std::string> flatten(const std::function<std::string(const ConfigValue&)>& text) const;

  // recipe_key for the first section or key that nobody asked for: names the nearest key and the section in which a
  // misplaced one belongs.
  Status finish() const;

 private:
  std::string origin_;
  std::map<std::string, ConfigTable> sections_;
};

}  // namespace penteract
