// The removal of leftovers took a temporary file of a living writer: between its creation and its lock, and between its
// end and its rename.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <string>
#include <thread>

#include "penteract/base/file.h"

namespace penteract {
namespace {

TEST(LeftoversRace, NoFileOfALivingWriterIsRemoved) {
  const std::string folder =
      (std::filesystem::temp_directory_path() / ("penteract-leftovers-" + std::to_string(::getpid()))).string();
  ASSERT_TRUE(make_directories(folder).ok());
  std::atomic<bool> done = false;
  std::thread remover([&] {
    while (!done) remove_leftovers(folder, "");
  });
  for (int i = 0; i < 300; ++i) {
    const std::string aside = folder + "/f.tmp-1-" + std::to_string(i), path = folder + "/f";
    auto writer = FileWriter::create(aside);
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE(writer->write("x", 1).ok() && writer->sync().ok());
    std::this_thread::yield();
    ASSERT_EQ(std::rename(aside.c_str(), path.c_str()), 0) << "after " << i << " files";
    ASSERT_TRUE(write_file_atomic(folder + "/g", "y").ok()) << "after " << i << " files";
  }
  done = true;
  remover.join();
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace penteract
