// Files that are whole or absent: read with a size limit, write aside, sync, rename.
// Errors: file_missing, file_unreadable, storage_write, storage_full, storage_read. Thread-safety: none shared.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "penteract/base/result.h"

namespace penteract {

// The bytes of a regular file of at most max_bytes.
Result<std::string> read_file(const std::string& path, uint64_t max_bytes = uint64_t{1} << 34);

// Replaces `path` in one step: PATH.tmp-PID-N beside it, fsync, rename, fsync of the folder.
Status write_file_atomic(const std::string& path, std::string_view bytes);

// Adds `bytes` to the end of a file and makes them durable; an absent one is made, or an error. One write, so that a kill leaves
// them whole or absent; what a full disk takes of them is cut off again.
enum class Absent { make, error };
Status append_file(const std::string& path, std::string_view bytes, Absent absent = Absent::make);

// Deletes the temporary files (NAME.tmp-PID-N, NAME beginning with `prefix`) in a folder whose writers are dead: a
// FileWriter holds a lock on its file. What cannot be deleted, or belongs to a writer that lives, stays.
void remove_leftovers(const std::string& folder, std::string_view prefix = "");

// Makes the entries of a folder durable (after a rename or create in it).
Status sync_directory(const std::string& path);

// Creates a folder and its parents.
Status make_directories(const std::string& path);

// The error of errno: storage_full for ENOSPC and EDQUOT, else `code`.
Error errno_error(ErrorCode code, const std::string& path, const std::string& doing);

// A file opened for writing, locked against remove_leftovers while the writer lives. Destroyed, it leaves the file as it is
// (the caller's temporary).
class FileWriter {
 public:
  static Result<FileWriter> create(const std::string& path);
  FileWriter(FileWriter&&) noexcept;
  FileWriter& operator=(FileWriter&&) noexcept;
  ~FileWriter();
  Status write(const void* data, size_t size_bytes);
  // fsync. The file stays open and locked, so that nobody takes it for a leftover, until the writer is destroyed: rename it
  // before.
  Status sync();
  uint64_t offset_bytes() const { return offset_bytes_; }

 private:
  FileWriter(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  int fd_ = -1;
  std::string path_;
  uint64_t offset_bytes_ = 0;
};

// A file opened for positioned reads; safe from several threads.
class FileReader {
 public:
  static Result<FileReader> open(const std::string& path);
  FileReader(FileReader&&) noexcept;
  FileReader& operator=(FileReader&&) noexcept;
  ~FileReader();
  Status read_at(uint64_t offset_bytes, void* out, size_t size_bytes) const;
  uint64_t size_bytes() const { return size_bytes_; }
  const std::string& path() const { return path_; }

 private:
  FileReader(int fd, std::string path, uint64_t size) : fd_(fd), path_(std::move(path)), size_bytes_(size) {}
  int fd_ = -1;
  std::string path_;
  uint64_t size_bytes_ = 0;
};

}  // namespace penteract
