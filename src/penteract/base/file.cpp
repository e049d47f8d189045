#include "penteract/base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
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
                 path, ""};
  }
  std::string bytes(file.size_bytes(), '\0');
  PENT_TRY(file.read_at(0, bytes.data(), bytes.size()));
  return bytes;
}

Result<FileWriter> FileWriter::create(const std::string& path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return errno_error(ErrorCode::storage_write, path, "create");
  return FileWriter(fd, path);
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
  auto* p = static_cast<const char*>(data);
  while (size_bytes > 0) {
    const ssize_t n = ::write(fd_, p, std::min(size_bytes, kMaxIoBytes));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno_error(ErrorCode::storage_write, path_, "write");
    p += n;
    size_bytes -= static_cast<size_t>(n);
    offset_bytes_ += static_cast<uint64_t>(n);
  }
  return {};
}

Status FileWriter::close() {
  if (::fsync(fd_) != 0) return errno_error(ErrorCode::storage_write, path_, "sync");
  const int fd = std::exchange(fd_, -1);
  if (::close(fd) != 0) return errno_error(ErrorCode::storage_write, path_, "close");
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
    PENT_TRY(file.close());
    if (::rename(aside.c_str(), path.c_str()) != 0) return errno_error(ErrorCode::storage_write, path, "rename into");
    return sync_directory(parent_of(path));
  };
  Status status = fill();
  if (!status.ok()) ::unlink(aside.c_str());
  return status;
}

}  // namespace penteract
