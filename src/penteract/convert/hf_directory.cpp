#include "penteract/convert/hf_directory.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <filesystem>
#include <set>

#include "penteract/base/check.h"
#include "penteract/base/json.h"
#include "penteract/base/json_config.h"
#include "penteract/families/registry.h"

namespace penteract::convert {
namespace fs = std::filesystem;
namespace {

constexpr const char* kIndexName = "model.safetensors.index.json";
constexpr size_t kMaxListed = 8;

// "a, b, c and 5 more"
std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size() && i < kMaxListed; ++i) text += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > kMaxListed) text += fmt::format(" and {} more", names.size() - kMaxListed);
  return text;
}

// The name of a file beside the index: no path may lead elsewhere.
bool is_plain_file_name(const std::string& name) {
  return !name.empty() && name.find('/') == std::string::npos && name.find('\0') == std::string::npos && name != "." &&
         name != ".." && name.ends_with(".safetensors");
}

// tensor -> file name, as the index says.
Result<std::map<std::string, std::string>> read_index(const std::string& path) {
  PENT_ASSIGN(const Json json, read_json(path));
  const auto map = json.is_object() ? json.find("weight_map") : json.end();
  if (!json.is_object() || map == json.end() || !map->is_object())
    return Error{ErrorCode::hf_tensors, "has no weight_map", path, "copy the index of the checkpoint again"};
  std::map<std::string, std::string> files;
  for (const auto& [tensor, file] : map->items()) {
    if (!file.is_string() || !is_plain_file_name(file.get<std::string>())) {
      return Error{ErrorCode::hf_tensors, fmt::format("\"{}\" lies in no .safetensors file beside it", tensor), path,
                   "the index may name files of its own folder only"};
    }
    files[tensor] = file.get<std::string>();
  }
  return files;
}

Error without_weights(const std::string& path) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(path, ignored)) {
    const std::string name = entry.path().filename().string();
    for (const char* refused : {".bin", ".pt", ".pth", ".gguf"}) {
      if (name.ends_with(refused)) {
        return Error{ErrorCode::hf_tensors, fmt::format("holds {}, but no safetensors", name), path,
                     "convert it with Transformers: model.save_pretrained(folder)"};
      }
    }
  }
  return Error{ErrorCode::hf_tensors, fmt::format("holds neither model.safetensors nor {}", kIndexName), path,
               "copy the weights beside config.json"};
}

}  // namespace

bool is_hf_directory(const std::string& path) {
  std::error_code ignored;
  return fs::is_regular_file(path + "/config.json", ignored);
}

Result<std::unique_ptr<HfDirectory>> HfDirectory::open(const std::string& path, std::vector<std::string>* notes) {
  std::unique_ptr<HfDirectory> directory(new HfDirectory(path));
  PENT_TRY(directory->read_config());
  PENT_TRY(directory->open_files());
  PENT_TRY(directory->compare(notes));
  return directory;
}

Status HfDirectory::read_config() {
  const std::string file = path_ + "/config.json";
  PENT_ASSIGN(ConfigTable table, read_json_config(file));
  auto model = families::read_hf_config(std::move(table));
  if (!model.ok()) {
    // The same reader serves recipes, whose errors are those of a command line; this is an input file.
    const Error& e = model.error();
    const std::string culprit = e.culprit.starts_with(file) ? e.culprit : fmt::format("{}: {}", file, e.culprit);
    return Error{ErrorCode::hf_config, e.what, culprit, e.remedy};
  }
  model_ = std::move(*model);
  const families::Family* family = or_throw(families::find_family(model_.family));
  tensors_ = family->hf_tensors(model_);
  for (const auto& tensor : tensors_) parts_of_[tensor.param].push_back(&tensor);
  return {};
}

Status HfDirectory::open_files() {
  std::map<std::string, std::string> index;
  std::vector<std::string> names = {"model.safetensors"};
  const bool indexed = fs::exists(path_ + "/" + kIndexName);
  if (indexed) {
    PENT_ASSIGN(index, read_index(path_ + "/" + kIndexName));
    std::set<std::string> distinct;
    for (const auto& [tensor, file] : index) distinct.insert(file);
    names.clear();
    for (const auto& name : distinct) names.push_back(name);
  } else if (!fs::exists(path_ + "/" + names[0])) {
    return without_weights(path_);
  }
  for (const auto& name : names) {
    PENT_ASSIGN(auto file, checkpoint::SafetensorsFile::open(path_ + "/" + name));
    files_.push_back(std::move(file));
  }
  for (size_t f = 0; f < files_.size(); ++f) {
    for (const auto& entry : files_[f].tensors()) {
      const auto [at, fresh] = places_.try_emplace(entry.name, Place{f, &entry});
      if (!fresh) {
        return Error{ErrorCode::hf_tensors, fmt::format("\"{}\" is in two files", entry.name), files_[f].file().path(),
                     ""};
      }
      if (!indexed) continue;
      const auto said = index.find(entry.name);
      if (said == index.end() || said->second != names[f]) {
        return Error{ErrorCode::hf_tensors,
                     fmt::format("holds \"{}\", but the index {}", entry.name,
                                 said == index.end() ? "does not name it" : "says it lies in " + said->second),
                     files_[f].file().path(), "copy index and files of one checkpoint"};
      }
    }
  }
  for (const auto& [tensor, file] : index) {
    if (!places_.count(tensor)) {
      return Error{ErrorCode::hf_tensors, fmt::format("lacks \"{}\", which the index names", tensor),
                   path_ + "/" + file, "copy index and files of one checkpoint"};
    }
  }
  return {};
}

Result<bool> HfDirectory::equal(const Place& a, const Place& b) const {
  if (a.entry->shape != b.entry->shape) return false;
  PENT_ASSIGN(const at::Tensor left, files_[a.file].read(*a.entry));
  PENT_ASSIGN(const at::Tensor right, files_[b.file].read(*b.entry));
  return left.scalar_type() == right.scalar_type() && left.equal(right);
}

Status HfDirectory::compare(std::vector<std::string>* notes) {
  std::vector<std::string> missing, surplus, different;
  std::set<std::string> expected;
  for (const auto& tensor : tensors_) {
    expected.insert(tensor.name);
    const auto at = places_.find(tensor.name);
    if (at == places_.end()) {
      missing.push_back(tensor.name);
      continue;
    }
    const auto& entry = *at->second.entry;
    if (entry.shape != tensor.shape) {
      different.push_back(fmt::format("{} is {}, expected {}", tensor.name, checkpoint::shape_text(entry.shape),
                                      checkpoint::shape_text(tensor.shape)));
    } else if (!checkpoint::is_floating(entry.dtype)) {
      different.push_back(
          fmt::format("{} is {}, expected a floating type", tensor.name, checkpoint::dtype_name(entry.dtype)));
    }
  }
  const std::string embedding = "model.embed_tokens.weight", head = "lm_head.weight";
  for (const auto& [name, place] : places_) {
    if (expected.count(name)) continue;
    if (name.ends_with(".rotary_emb.inv_freq")) {
      notes->push_back(fmt::format("{}: {} is dropped: it follows from the config", path_, name));
      continue;
    }
    if (name == head && model_.tie_embeddings && places_.count(embedding)) {
      PENT_ASSIGN(const bool same, equal(place, places_.at(embedding)));
      if (same) {
        notes->push_back(fmt::format("{}: {} is dropped: it equals the embedding it is tied to", path_, name));
        continue;
      }
    }
    surplus.push_back(name);
  }
  std::string what;
  auto add = [&](const char* label, const std::vector<std::string>& names) {
    if (!names.empty()) what += fmt::format("{}{}: {}", what.empty() ? "" : "; ", label, listed(names));
  };
  add("missing", missing);
  add("different", different);
  add("not of this model", surplus);
  if (what.empty()) return {};
  return Error{ErrorCode::hf_tensors, what, path_,
               fmt::format("the tensors must be those of the {} model of config.json", model_.family)};
}

Status HfDirectory::check(const std::vector<spec::Param>& table) const {
  // open() compared the files with the family's tensors; these must make up the table.
  for (const auto& param : table) {
    int64_t filled = 0;
    const auto parts = parts_of_.find(param.name);
    if (parts != parts_of_.end()) {
      for (const auto* part : parts->second) filled += part->slice.num_elements();
    }
    PENT_CHECK(filled == param.num_elements(), "{} of {} elements of {}", filled, param.num_elements(), param.name);
  }
  PENT_CHECK_EQ(parts_of_.size(), table.size());
  return {};
}

Status HfDirectory::read(const std::string& param, const topology::Slice& slice, const at::Tensor& out) const {
  const at::Tensor target = out.view(slice.size);
  for (const families::HfTensor* part : parts_of_.at(param)) {
    const auto common = topology::intersect(part->slice, slice);
    if (!common) continue;
    // The common part in the tensor's own dims: a dim of one that the tensor lacks is left out.
    topology::Slice own;
    const size_t lacking = slice.size.size() - part->shape.size();
    at::Tensor where = target;
    for (size_t d = 0; d < slice.size.size(); ++d) {
      where = where.narrow(static_cast<int64_t>(d), common->offset[d] - slice.offset[d], common->size[d]);
      if (d < lacking) continue;
      own.offset.push_back(common->offset[d] - part->slice.offset[d]);
      own.size.push_back(common->size[d]);
    }
    const Place& place = places_.at(part->name);
    if (where.is_contiguous()) {
      PENT_TRY(files_[place.file].read(*place.entry, own, where));
      continue;
    }
    const at::Tensor copy = at::empty(common->size, out.options());
    PENT_TRY(files_[place.file].read(*place.entry, own, copy));
    where.copy_(copy);
  }
  return {};
}

}  // namespace penteract::convert
