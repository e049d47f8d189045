#include "penteract/base/toml.h"

#include <fmt/format.h>

#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include "penteract/base/file.h"
#include "penteract/base/text.h"

namespace penteract {
namespace {

constexpr uint64_t kMaxRecipeBytes = uint64_t{16} << 20;
constexpr int kMaxDepth = 8;

Result<ConfigValue> convert(const toml::node& node, const std::string& where, int depth) {
  ConfigValue value;
  value.where = where;
  if (depth > kMaxDepth)
    return Error{ErrorCode::recipe_syntax, fmt::format("is nested deeper than {} levels", kMaxDepth), where,
                 "lists of lists are not used in recipes"};
  if (const auto* b = node.as_boolean()) {
    value.kind = ConfigValue::Kind::boolean;
    value.boolean = b->get();
  } else if (const auto* i = node.as_integer()) {
    value.kind = ConfigValue::Kind::integer;
    value.integer = i->get();
  } else if (const auto* f = node.as_floating_point()) {
    value.kind = ConfigValue::Kind::floating;
    value.floating = f->get();
  } else if (const auto* s = node.as_string()) {
    value.kind = ConfigValue::Kind::string;
    value.string = s->get();
    if (value.string.find('\0') != std::string::npos) {
      return Error{ErrorCode::recipe_range, fmt::format("the text {} holds a NUL character", quote_line(value.string)),
                   where, "no path or name has one: remove it"};
    }
  } else if (const auto* list = node.as_array()) {
    value.kind = ConfigValue::Kind::list;
    for (const auto& item : *list) {
      PENT_ASSIGN(ConfigValue converted, convert(item, where, depth + 1));
      value.items.push_back(std::move(converted));
    }
  } else if (const auto* table = node.as_table()) {
    value.kind = ConfigValue::Kind::table;
    for (const auto& [key, item] : *table) {
      PENT_ASSIGN(ConfigValue converted, convert(item, where, depth + 1));
      value.fields.emplace(std::string(key.str()), std::move(converted));
    }
  } else {
    return Error{ErrorCode::recipe_type, "dates and times are not used in recipes", where, "write a text or a number"};
  }
  return value;
}

// The parser's words, shorter; for a number past what a double holds it only says that it is no value.
std::string syntax_problem(std::string_view description) {
  constexpr std::string_view kOpening = "Error while parsing ", kNoValue = " could not be interpreted as a value";
  if (description.starts_with(kOpening)) description.remove_prefix(kOpening.size());
  constexpr std::string_view kFloat = "floating-point: ";
  if (description.starts_with(kFloat) && description.ends_with(kNoValue)) {
    description.remove_prefix(kFloat.size());
    description.remove_suffix(kNoValue.size());
    return fmt::format("{} is no number between -1.8e308 and 1.8e308", description);
  }
  return std::string(description);
}

// The origin of a --set is the key; that of a file goes with the line.
Result<toml::table> parse(std::string_view text, const std::string& origin, bool is_file) {
  toml::parse_result result = toml::parse(text, origin);
  if (!result) {
    const auto& e = result.error();
    return Error{ErrorCode::recipe_syntax, syntax_problem(e.description()),
                 is_file ? fmt::format("{}:{}", origin, e.source().begin.line) : origin,
                 is_file ? "the file is TOML: section headers in brackets, key = value"
                         : "the value is TOML, for example 20, 1e-3, \"text\" or [\"a.txt\", \"b.txt\"]"};
  }
  return std::move(result).table();
}

// A bare word is a text; what begins like a list, a table or a text, or is all digits, is a value with a mistake.
bool is_bare_word(std::string_view text) {
  text = trim(text);
  return text.empty() ||
         (text.find_first_of("[{\"'") != 0 && text.find_first_not_of("0123456789eE+-._") != std::string_view::npos);
}

struct Set {
  std::string section, key;
  ConfigValue value;
};

Result<Set> parse_set(const std::string& text) {
  const size_t equals = text.find('=');
  const std::string path = text.substr(0, equals);
  const size_t dot = path.find('.');
  if (equals == std::string::npos || dot == std::string::npos || dot == 0 || dot + 1 == path.size()) {
    return Error{ErrorCode::recipe_syntax, "expected section.key=value", fmt::format("--set {}", text),
                 "for example --set train.steps=20"};
  }
  if (text.find_first_of("\r\n") != std::string::npos) {
    return Error{ErrorCode::recipe_syntax, "holds more than one line", fmt::format("--set {}", quote_line(path)),
                 "give each key its own --set, on one line"};
  }
  const std::string raw = text.substr(equals + 1);
  const std::string where = fmt::format("--set {}", path);
  auto table = parse("value = " + raw, where, false);
  if (!table.ok() && is_bare_word(raw)) table = parse("value = " + toml_quote(raw), where, false);
  if (!table.ok()) return table.take_error();
  Set set{path.substr(0, dot), path.substr(dot + 1), {}};
  PENT_ASSIGN(set.value, convert(*table->get("value"), where, 0));
  return set;
}

}  // namespace

Result<ConfigDocument> parse_toml(std::string_view text, const std::string& origin,
                                  const std::vector<std::string>& sets) {
  PENT_ASSIGN(const toml::table root, parse(text, origin, true));
  std::map<std::string, std::map<std::string, ConfigValue>> sections;
  for (const auto& [name, node] : root) {
    const std::string where = fmt::format("{}:{}", origin, node.source().begin.line);
    const auto* table = node.as_table();
    if (!table) {
      return Error{ErrorCode::recipe_key, fmt::format("the key \"{}\" stands outside any section", name.str()), where,
                   "put it below a header such as [run]"};
    }
    auto& section = sections[std::string(name.str())];
    for (const auto& [key, value] : *table) {
      PENT_ASSIGN(ConfigValue converted, convert(value, fmt::format("{}:{}", origin, value.source().begin.line), 0));
      section.emplace(std::string(key.str()), std::move(converted));
    }
  }
  for (const auto& text_of_set : sets) {
    PENT_ASSIGN(Set set, parse_set(text_of_set));
    sections[set.section][set.key] = std::move(set.value);
  }
  ConfigDocument document(origin);
  for (auto& [name, values] : sections) document.add(name, std::move(values));
  return document;
}

Result<ConfigDocument> read_toml(const std::string& path, const std::vector<std::string>& sets) {
  PENT_ASSIGN(const FileReader file, FileReader::open(path));
  if (file.size_bytes() > kMaxRecipeBytes) {
    return Error{ErrorCode::recipe_syntax,
                 fmt::format("has {} bytes, a recipe at most {}", file.size_bytes(), format_bytes(kMaxRecipeBytes)),
                 path, "name a recipe in TOML"};
  }
  std::string text(file.size_bytes(), '\0');
  PENT_TRY(file.read_at(0, text.data(), text.size()));
  return parse_toml(text, path, sets);
}

std::string toml_quote(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += std::string("\\") + c;
    else if (c == '\n') out += "\\n";
    else if (c == '\t') out += "\\t";
    else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      out += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
    else out += c;
  }
  return out + "\"";
}

}  // namespace penteract
