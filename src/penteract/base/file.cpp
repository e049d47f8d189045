#include "penteract/base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

namespace penteract {
namespace {

// A write or read larger than this is done in pieces (Linux moves at most 2 GiB a call).
constexpr size_t kMaxIoBytes = size_t{1} << 30;

std::string parent_of(const std::string& path) {
  const auto parent = std::filesystem::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

// Whether the name still leads to the open file: another process may have deleted or replaced it.
bool still_named(int fd, const std::string& path) {
  struct stat open_file {
  }, named{};
  return ::fstat(fd, &open_file) == 0 && ::stat(path.c_str(), &named) == 0 && open_file.st_dev == named.st_dev &&
         open_file.st_ino == named.st_ino;
}

// NAME.tmp-PID-N
bool is_temporary_name(std::string_view name) {
  constexpr std::string_view kMark = ".tmp-";
  const size_t mark = name.rfind(kMark);
  if (mark == std::string_view::npos || mark == 0) return false;
  const std::string_view numbers = name.substr(mark + kMark.size());
  const size_t dash = numbers.find('-');
  return dash != std::string_view::npos && dash > 0 && dash + 1 < numbers.size() &&
         numbers.find_first_not_of("0123456789", dash + 1) == std::string_view::npos &&
         numbers.find_first_not_of("0123456789") == dash;
}

Status write_all(int fd, const std::string& path, const char* bytes, size_t size_bytes) {
  while (size_bytes > 0) {
    const ssize_t n = ::write(fd, bytes, std::min(size_bytes, kMaxIoBytes));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno_error(ErrorCode::storage_write, path, "write");
    bytes += n;
    size_bytes -= static_cast<size_t>(n);
  }
  return {};
}

}  // namespace

Error errno_error(ErrorCode code, const std::string& path, const std::string& doing) {
  const int err = errno;
  const bool full = err == ENOSPC || err == EDQUOT;
  std::string remedy;
  if (full) remedy = "free space on this file system, or choose another folder";
  if (err == EACCES || err == EROFS || err == EPERM) remedy = "check the permissions of the file and of its folder";
  return {full ? ErrorCode::storage_full : code,
          fmt::format("cannot {}: {}", doing, std::generic_category().message(err)), path, remedy};
}

Result<FileReader> FileReader::open(const std::string& path) {
  // Without O_NONBLOCK a pipe in the place of a file would be waited for.
  const int fd = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) {
    return errno_error(errno == ENOENT || errno == ENOTDIR ? ErrorCode::file_missing : ErrorCode::file_unreadable, path,
                       "open");
  }
  struct stat st {};
  if (::fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
    ::close(fd);
    return Error{ErrorCode::file_unreadable, "is not a regular file", path, "name a file, not a folder or a device"};
  }
  return FileReader(fd, path, static_cast<uint64_t>(st.st_size));
}

FileReader::FileReader(FileReader&& o) noexcept
    : fd_(std::exchange(o.fd_, -1)), path_(std::move(o.path_)), size_bytes_(o.size_bytes_) {}
FileReader& FileReader::operator=(FileReader&& o) noexcept {
  std::swap(fd_, o.fd_);
  std::swap(path_, o.path_);
  std::swap(size_bytes_, o.size_bytes_);
  return *this;
}
FileReader::~FileReader() {
  if (fd_ >= 0) ::close(fd_);
}

Status FileReader::read_at(uint64_t offset_bytes, void* out, size_t size_bytes) const {
  if (offset_bytes > size_bytes_ || size_bytes > size_bytes_ - offset_bytes) {
    return Error{
        ErrorCode::file_malformed,
        fmt::format("bytes {} to {} are wanted, the file has {}", offset_bytes, offset_bytes + size_bytes, size_bytes_),
        path_, "the file is cut short: copy or make it again"};
  }
  auto* p = static_cast<char*>(out);
  while (size_bytes > 0) {
    const ssize_t n = ::pread(fd_, p, std::min(size_bytes, kMaxIoBytes), static_cast<off_t>(offset_bytes));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno_error(ErrorCode::storage_read, path_, "read");
    if (n == 0) {
      return Error{ErrorCode::file_malformed, "became shorter while it was read", path_, "let nothing else write it"};
    }
    p += n;
    offset_bytes += static_cast<uint64_t>(n);
    size_bytes -= static_cast<size_t>(n);
  }
  return {};
}

Result<std::string> read_file(const std::string& path, uint64_t max_bytes) {
  PENT_ASSIGN(const FileReader file, FileReader::open(path));
  if (file.size_bytes() > max_bytes) {
    return Error{ErrorCode::file_malformed,
                 fmt::format("has {} bytes, more than the {} that such a file may have", file.size_bytes(), max_bytes),
                 path, "name a file of the right kind"};
  }
  std::string bytes(file.size_bytes(), '\0');
  PENT_TRY(file.read_at(0, bytes.data(), bytes.size()));
  return bytes;
}

Result<FileWriter> FileWriter::create(const std::string& path) {
  while (true) {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0) return errno_error(ErrorCode::storage_write, path, "create");
    // Where a file system has no locks nothing is removed either. Between open and lock the file may be taken for a
    // leftover by someone who holds the lock for a moment: then it is made again.
    int locked = 0;
    do locked = ::flock(fd, LOCK_EX);
    while (locked != 0 && errno == EINTR);
    if (locked != 0 || still_named(fd, path)) return FileWriter(fd, path);
    ::close(fd);
  }
}
FileWriter::FileWriter(FileWriter&& o) noexcept
    : fd_(std::exchange(o.fd_, -1)), path_(std::move(o.path_)), offset_bytes_(o.offset_bytes_) {}
FileWriter& FileWriter::operator=(FileWriter&& o) noexcept {
  std::swap(fd_, o.fd_);
  std::swap(path_, o.path_);
  std::swap(offset_bytes_, o.offset_bytes_);
  return *this;
}
FileWriter::~FileWriter() {
  if (fd_ >= 0) ::close(fd_);
}

Status FileWriter::write(const void* data, size_t size_bytes) {
  PENT_TRY(write_all(fd_, path_, static_cast<const char*>(data), size_bytes));
  offset_bytes_ += size_bytes;
  return {};
}

Status FileWriter::sync() {
  // The descriptor, and with it the lock, is kept: the file has its last name only when the caller has renamed it.
  if (::fsync(fd_) != 0) return errno_error(ErrorCode::storage_write, path_, "sync");
  return {};
}

Status sync_directory(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return errno_error(ErrorCode::storage_write, path, "open the folder");
  const int rc = ::fsync(fd);
  const int err = errno;
  ::close(fd);
  errno = err;
  // Some file systems cannot sync a folder; they say EINVAL and make entries durable themselves.
  if (rc != 0 && err != EINVAL) return errno_error(ErrorCode::storage_write, path, "sync the folder");
  return {};
}

Status make_directories(const std::string& path) {
  std::error_code ec;
  std::filesystem::create_directories(path, ec);
  if (ec) {
    errno = ec.value();
    return errno_error(ErrorCode::storage_write, path, "create the folder");
  }
  return {};
}

Status write_file_atomic(const std::string& path, std::string_view bytes) {
  static std::atomic<uint64_t> counter{0};  // only makes temporary names of this process distinct
  const std::string aside = fmt::format("{}.tmp-{}-{}", path, ::getpid(), counter++);
  auto fill = [&]() -> Status {
    PENT_ASSIGN(FileWriter file, FileWriter::create(aside));
    PENT_TRY(file.write(bytes.data(), bytes.size()));
    PENT_TRY(file.sync());
    if (::rename(aside.c_str(), path.c_str()) != 0) return errno_error(ErrorCode::storage_write, path, "rename into");
    return sync_directory(parent_of(path));
  };
  Status status = fill();
  if (!status.ok()) ::unlink(aside.c_str());
  return status;
}

Status append_file(const std::string& path, std::string_view bytes, Absent absent) {
  const int make = absent == Absent::make ? O_CREAT : 0;
  const int fd = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | make, 0644);
  if (fd < 0) return errno_error(ErrorCode::storage_write, path, "open");
  const off_t end_before = ::lseek(fd, 0, SEEK_END);
  Status status = write_all(fd, path, bytes.data(), bytes.size());
  if (status.ok() && ::fsync(fd) != 0) status = errno_error(ErrorCode::storage_write, path, "sync");
  if (!status.ok() && end_before >= 0) [[maybe_unused]]
    const int cut = ::ftruncate(fd, end_before);
  ::close(fd);
  return status;
}

void remove_leftovers(const std::string& folder, std::string_view prefix) {
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (!name.starts_with(prefix) || !is_temporary_name(name)) continue;
    const std::string path = it->path().string();
    const int fd = ::open(path.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) continue;
    struct stat st {};
    if (::fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && ::flock(fd, LOCK_EX | LOCK_NB) == 0 && still_named(fd, path))
      ::unlink(path.c_str());
    ::close(fd);
  }
}

}  // namespace penteract
