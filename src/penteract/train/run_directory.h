// The folder of a run: resolved recipe, environment, metrics, logs, evidence, checkpoints. One run at a time.
// Errors: run_directory, storage_*. Thread-safety: one thread's.
#pragma once

#include <string>

#include "penteract/base/result.h"
#include "penteract/topology/layout.h"

namespace penteract::train {

class RunDirectory {
 public:
  // Creates the folder where it is missing, proves that files can be written, synced and renamed in it, and locks it
  // against a second run until destroyed.
  static Result<RunDirectory> open(const std::string& path);
  RunDirectory(RunDirectory&&) noexcept;
  RunDirectory& operator=(RunDirectory&&) noexcept;
  ~RunDirectory();

  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  std::string checkpoints() const { return file("checkpoints"); }
  std::string log_of_rank(int rank) const;  // logs/rank-00000.log
  Status write(const std::string& name, const std::string& text) const;

 private:
  RunDirectory(std::string path, int lock_fd) : path_(std::move(path)), lock_fd_(lock_fd) {}
  std::string path_;
  int lock_fd_ = -1;
};

// environment.json: versions, host, processor, threads, command line, and where each rank stands on both grids.
std::string environment_json(const std::string& command_line, const topology::Layout& layout, int threads_per_rank);

}  // namespace penteract::train
