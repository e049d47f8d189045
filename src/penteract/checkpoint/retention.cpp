#include "penteract/checkpoint/retention.h"

#include <fmt/format.h>

#include <filesystem>

#include "penteract/base/file.h"
#include "penteract/base/json.h"
#include "penteract/checkpoint/step_directory.h"

namespace penteract::checkpoint {
namespace fs = std::filesystem;
namespace {

constexpr const char* kIndexFileName = "index.json";

}  // namespace

Result<std::vector<std::string>> read_records(const std::string& checkpoints_dir) {
  const std::string path = join_path(checkpoints_dir, kIndexFileName);
  std::vector<std::string> names;
  auto document = read_json(path);
  if (!document.ok() && document.error().code == ErrorCode::file_missing) return names;
  const auto malformed = [&](const std::string& what) {
    return Error{ErrorCode::file_malformed, what, path,
                 "delete it: the steps that are there then stay until you delete them yourself"};
  };
  if (!document.ok()) return malformed(document.error().what);
  if (!document->is_object() || document->value("version", Json()) != Json(1) || !document->contains("steps") ||
      !(*document)["steps"].is_array()) {
    return malformed("is no list of steps of version 1");
  }
  for (const Json& name : (*document)["steps"]) {
    if (!name.is_string() || !parse_step_name(name.get_ref<const std::string&>())) {
      return malformed("lists what is no name of a step");
    }
    names.push_back(name.get<std::string>());
  }
  return names;
}

Status write_records(const std::string& checkpoints_dir, const std::vector<std::string>& names) {
  const Json document = {{"version", 1}, {"steps", names}};
  return write_file_atomic(join_path(checkpoints_dir, kIndexFileName), document.dump(2) + "\n");
}

Status remove_tree(const std::string& path) {
  std::error_code error;
  if (!fs::is_symlink(path, error)) fs::remove(fs::path(path) / kStateFileName, error);
  fs::remove_all(path, error);
  if (error) {
    errno = error.value();
    return errno_error(ErrorCode::storage_write, path, "delete");
  }
  return {};
}

Status retain_steps(const std::string& checkpoints_dir, int keep) {
  if (keep <= 0) return {};
  PENT_ASSIGN(const std::vector<std::string> names, read_records(checkpoints_dir));
  std::vector<std::string> stay;
  Status status;
  int num_complete = 0;
  for (auto name = names.rbegin(); name != names.rend(); ++name) {
    const std::string path = join_path(checkpoints_dir, *name);
    std::error_code error;
    if (!fs::exists(path, error)) continue;
    if (num_complete >= keep) {
      Status removed = remove_tree(path);
      if (removed.ok()) continue;
      status = std::move(removed);
    } else if (read_step(path).ok()) {
      ++num_complete;
    }
    stay.insert(stay.begin(), *name);
  }
  if (stay != names) PENT_TRY(write_records(checkpoints_dir, stay));
  return status;
}

}  // namespace penteract::checkpoint
