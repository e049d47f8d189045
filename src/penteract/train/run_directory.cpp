#include "penteract/train/run_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/utsname.h>
#include <torch/version.h>
#include <unistd.h>

#include <thread>
#include <utility>

#include "penteract/base/file.h"
#include "penteract/base/json.h"
#include "penteract/topology/rank_grid.h"

namespace penteract::train {

Result<RunDirectory> RunDirectory::open(const std::string& path) {
  PENT_TRY(make_directories(path));
  PENT_TRY(make_directories(path + "/checkpoints"));
  PENT_TRY(make_directories(path + "/logs"));
  const std::string lock = path + "/.lock";
  const int fd = ::open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return errno_error(ErrorCode::run_directory, lock, "create");
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    ::close(fd);
    return Error{ErrorCode::run_directory, "another run is using this folder", path,
                 "wait for it to end, or choose another run.dir"};
  }
  RunDirectory directory(path, fd);
  for (const char* folder : {".", "checkpoints", "tb"}) remove_leftovers(directory.file(folder));
  // A folder that cannot be written is found before the first step, not at the first save.
  for (const char* folder : {"", "checkpoints/"}) {
    const std::string probe = directory.file(fmt::format("{}.probe", folder));
    PENT_TRY(write_file_atomic(probe, "probe"));
    ::unlink(probe.c_str());
  }
  return directory;
}

RunDirectory::RunDirectory(RunDirectory&& o) noexcept
    : path_(std::move(o.path_)), lock_fd_(std::exchange(o.lock_fd_, -1)) {}
RunDirectory& RunDirectory::operator=(RunDirectory&& o) noexcept {
  std::swap(path_, o.path_);
  std::swap(lock_fd_, o.lock_fd_);
  return *this;
}
RunDirectory::~RunDirectory() {
  if (lock_fd_ >= 0) ::close(lock_fd_);
}

std::string RunDirectory::log_of_rank(int rank) const { return file(fmt::format("logs/rank-{:05}.log", rank)); }

Status RunDirectory::write(const std::string& name, const std::string& text) const {
  return write_file_atomic(file(name), text);
}

std::string environment_json(const std::string& command_line, const topology::Layout& layout, int threads_per_rank) {
  utsname host{};
  ::uname(&host);
  nlohmann::ordered_json env;
  env["penteract"] = PENT_VERSION;
  env["libtorch"] = TORCH_VERSION;
  env["compiler"] = __VERSION__;
  env["host"] = host.nodename;
  env["system"] = fmt::format("{} {} {}", host.sysname, host.release, host.machine);
  env["cores"] = std::thread::hardware_concurrency();
  env["device"] = "cpu";
  env["git_revision"] = PENT_GIT_REVISION;
  env["ranks"] = layout.num_ranks();
  env["threads_per_rank"] = threads_per_rank;
  env["layout"] = topology::to_string(layout);
  env["command_line"] = command_line;
  const topology::RankGrid grid(layout);
  for (int rank = 0; rank < grid.num_ranks(); ++rank) {
    const topology::Coord c = grid.coord(rank);
    env["map"].push_back(fmt::format("rank {}: {}, cpu, tp {} cp {} dp {} pp {}, etp {} ep {} edp {}", rank,
                                     host.nodename, c.tp, c.cp, c.dp, c.pp, c.etp, c.ep, c.edp));
  }
  return env.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace penteract::train
