#include "penteract/train/tensorboard.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>

#include "penteract/base/file.h"
#include "penteract/base/json.h"

namespace penteract::train {
namespace {

struct Seen {
  double wall_time = 0;
  int64_t step = 0;
  std::string version;
  std::map<std::string, float> scalars;
};

// A reader of protobuf's wire format (protobuf.dev/programming-guides/encoding), and the field numbers of TensorBoard
// written out once more: nothing that wrote the file is used to read it.
class Message {
 public:
  explicit Message(std::string_view bytes) : rest_(bytes) {}
  // Moves to the next field; its value is then varint() or bytes(), whichever its wire type says.
  bool next() {
    if (rest_.empty()) return false;
    const uint64_t tag = take_varint();
    field_ = tag >> 3;
    const uint64_t type = tag & 7;
    if (type == 0) varint_ = take_varint();
    if (type == 1) bytes_ = take(8);
    if (type == 2) bytes_ = take(take_varint());
    if (type == 5) bytes_ = take(4);
    EXPECT_TRUE(type == 0 || type == 1 || type == 2 || type == 5) << "wire type " << type;
    return true;
  }
  uint64_t field() const { return field_; }
  uint64_t varint() const { return varint_; }
  std::string_view bytes() const { return bytes_; }
  template <class T>
  T number() const {
    T out{};
    EXPECT_EQ(bytes_.size(), sizeof out);
    std::memcpy(&out, bytes_.data(), std::min(bytes_.size(), sizeof out));
    return out;
  }

 private:
  std::string_view take(uint64_t size) {
    EXPECT_LE(size, rest_.size());
    const std::string_view out = rest_.substr(0, size);
    rest_.remove_prefix(out.size());
    return out;
  }
  uint64_t take_varint() {
    uint64_t out = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const std::string_view byte = take(1);
      if (byte.empty()) return 0;
      out |= static_cast<uint64_t>(byte[0] & 0x7F) << shift;
      if ((byte[0] & 0x80) == 0) return out;
    }
    ADD_FAILURE() << "a varint without an end";
    return 0;
  }
  std::string_view rest_, bytes_;
  uint64_t field_ = 0, varint_ = 0;
};

Seen decode(std::string_view bytes) {
  Seen seen;
  for (Message event(bytes); event.next();) {
    if (event.field() == 1) seen.wall_time = event.number<double>();
    if (event.field() == 2) seen.step = static_cast<int64_t>(event.varint());
    if (event.field() == 3) seen.version = event.bytes();
    if (event.field() != 5) continue;
    for (Message summary(event.bytes()); summary.next();) {
      EXPECT_EQ(summary.field(), 1U);
      std::string tag;
      float number = std::numeric_limits<float>::quiet_NaN();
      for (Message value(summary.bytes()); value.next();) {
        if (value.field() == 1) tag = value.bytes();
        if (value.field() == 2) number = value.number<float>();
      }
      EXPECT_TRUE(seen.scalars.emplace(tag, number).second) << tag;
    }
  }
  return seen;
}

uint32_t masked(std::string_view bytes) {
  const uint32_t crc = crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8U;
}

std::string bytes_of(uint64_t value, size_t size) { return {reinterpret_cast<const char*>(&value), size}; }

std::string framed(const std::string& data) {
  const std::string length = bytes_of(data.size(), 8);
  return length + bytes_of(masked(length), 4) + data + bytes_of(masked(data), 4);
}

class TensorBoard : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("penteract-tb-" + std::to_string(::getpid()));
    path_ = (folder_ / "tb" / TensorBoardLog::kFileName).string();
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // Opens as after the checkpoint of step `resume`; a step's loss is its number plus `shift`.
  void write_steps(int64_t first, int64_t last, int64_t resume, double shift = 0) {
    auto log = TensorBoardLog::open(path_.substr(0, path_.rfind('/')), resume);
    ASSERT_TRUE(log.ok()) << log.error().message();
    for (int64_t step = first; step <= last; ++step) {
      StepLine line;
      line.step = step;
      line.result.loss = static_cast<double>(step) + shift;
      ASSERT_TRUE(log->append(line).ok());
    }
  }

  std::string bytes() { return *read_file(path_); }
  void set_bytes(const std::string& text) { ASSERT_TRUE(write_file_atomic(path_, text).ok()); }

  std::vector<Seen> events() {
    std::vector<Seen> out;
    const std::string file = bytes();
    for (size_t at = 0; at < file.size();) {
      uint64_t length = 0;
      std::memcpy(&length, file.data() + at, 8);
      const std::string data = file.substr(at + 12, length);
      EXPECT_EQ(file.substr(at, length + 16), framed(data)) << "at byte " << at;
      out.push_back(decode(data));
      at += length + 16;
    }
    return out;
  }

  // Step and loss of all events behind the version's.
  std::vector<std::pair<int64_t, float>> curve() {
    std::vector<std::pair<int64_t, float>> out;
    const auto all = events();
    EXPECT_EQ(all.at(0).version, "brain.Event:2");
    for (size_t i = 1; i < all.size(); ++i) {
      EXPECT_EQ(all[i].version, "");
      out.emplace_back(all[i].step, all[i].scalars.at("loss"));
    }
    return out;
  }

  std::filesystem::path folder_;
  std::string path_;
};

using Curve = std::vector<std::pair<int64_t, float>>;

TEST(Crc32c, AnswersOfRfc3720) {
  EXPECT_EQ(crc32c(""), 0U);
  EXPECT_EQ(crc32c("123456789"), 0xE3069283U);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAU);
  EXPECT_EQ(crc32c(std::string(32, '\xFF')), 0x62A8AB43U);
  std::string rising;
  for (char c = 0; c < 32; ++c) rising += c;
  EXPECT_EQ(crc32c(rising), 0x46DD794EU);
}

TEST_F(TensorBoard, AFileBeginsAsThoseOfTensorFlow) {
  write_steps(1, 0, 0);
  const std::string file = bytes();
  ASSERT_EQ(file.size(), 40U);
  // The length 24 and its masked checksum: the head of any event file that TensorFlow or TensorBoard wrote.
  EXPECT_EQ(file.substr(0, 12), std::string("\x18\0\0\0\0\0\0\0\xa3\x7f\x4b\x22", 12));
  EXPECT_EQ(events().at(0).version, "brain.Event:2");
}

TEST_F(TensorBoard, ScalarsAreTheFiniteNumbersOfTheLine) {
  auto log = TensorBoardLog::open((folder_ / "tb").string(), 0);
  ASSERT_TRUE(log.ok());
  StepLine line;
  line.step = int64_t{1} << 40;
  line.result.loss = 2.5;
  line.result.grad_norm = std::numeric_limits<double>::infinity();
  line.result.aux_loss = 0;
  line.lr = 3e-4;
  line.tflops = 1e300;  // not a float
  line.memory_max_bytes = int64_t{5} << 30;
  line.eval_loss = 2.75;
  const auto seconds = [] {
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  };
  const double before = seconds();
  ASSERT_TRUE(log->append(line).ok());
  const Seen seen = events().at(1);
  EXPECT_EQ(seen.step, int64_t{1} << 40);
  EXPECT_GE(seen.wall_time, before);
  EXPECT_LE(seen.wall_time, seconds());
  EXPECT_EQ(seen.scalars.at("loss"), 2.5F);
  EXPECT_EQ(seen.scalars.at("aux_loss"), 0.0F);  // a zero is a point of the curve
  EXPECT_EQ(seen.scalars.at("lr"), 3e-4F);
  EXPECT_EQ(seen.scalars.at("memory_max_bytes"), 5368709120.0F);
  EXPECT_EQ(seen.scalars.at("eval_loss"), 2.75F);
  for (const char* absent : {"step", "grad_norm", "tflops", "nonfinite", "test_loss"})
    EXPECT_FALSE(seen.scalars.contains(absent)) << absent;
  const Json json = *parse_json(line.json(), "line");
  for (const auto& [key, value] : json.items()) {
    const bool wanted = value.is_number() && key != "step" && key != "tflops";
    EXPECT_EQ(seen.scalars.contains(key), wanted) << key;
  }
}

// Userlog F6: each step stands once, also after a crash between checkpoints; steps redone replace the old.
TEST_F(TensorBoard, AResumeCutsLaterEventsAndATornLastOne) {
  write_steps(1, 8, 0);
  std::filesystem::resize_file(path_, std::filesystem::file_size(path_) - 5);  // the process died here
  write_steps(6, 8, 5, 0.5);
  EXPECT_EQ(curve(), (Curve{{1, 1}, {2, 2}, {3, 3}, {4, 4}, {5, 5}, {6, 6.5}, {7, 7.5}, {8, 8.5}}));
}

TEST_F(TensorBoard, AFreshStartBeginsAnew) {
  write_steps(1, 3, 0);
  write_steps(1, 2, 0, 0.5);
  EXPECT_EQ(curve(), (Curve{{1, 1.5}, {2, 2.5}}));
}

TEST_F(TensorBoard, AFileOfWhichAllIsKeptIsNotReplaced) {
  write_steps(1, 3, 0);
  std::filesystem::create_hard_link(path_, folder_ / "the-file");
  write_steps(4, 4, 3);
  EXPECT_TRUE(std::filesystem::equivalent(path_, folder_ / "the-file"));
  write_steps(4, 4, 3);
  EXPECT_FALSE(std::filesystem::equivalent(path_, folder_ / "the-file"));
  EXPECT_EQ(curve(), (Curve{{1, 1}, {2, 2}, {3, 3}, {4, 4}}));
}

TEST_F(TensorBoard, CutAnywhereTheWholeRecordsStay) {
  write_steps(1, 2, 0);
  const std::string whole = bytes();
  const size_t record = (whole.size() - 40) / 2;
  ASSERT_EQ(whole.size(), 40 + 2 * record);
  // At and beside each border: version record, head, data, tail, record.
  for (const size_t size : {size_t{0}, size_t{1}, size_t{39}, size_t{40}, size_t{41}, size_t{48}, size_t{52},
                            size_t{56}, size_t{57}, 40 + record - 5, 40 + record - 4, 40 + record - 1, 40 + record,
                            41 + record, 52 + record, 40 + 2 * record - 1, 40 + 2 * record}) {
    set_bytes(whole.substr(0, size));
    write_steps(1, 0, 2);
    const std::string now = bytes();
    if (size < 40) {
      EXPECT_EQ(now.size(), 40U) << size;  // a new version record
    } else {
      EXPECT_EQ(now, whole.substr(0, size - (size - 40) % record)) << size;
    }
  }
}

TEST_F(TensorBoard, DamagedOrHostileRecordsAreLeftOut) {
  write_steps(1, 3, 0);
  const std::string whole = bytes();
  const size_t record = (whole.size() - 40) / 3;
  const Curve two{{1, 1}, {2, 2}};

  for (const uint64_t length :
       {uint64_t{0}, uint64_t{1} << 40, ~uint64_t{0}, ~uint64_t{0} - 15, uint64_t{1} << 63, uint64_t{1} << 21}) {
    const std::string head = bytes_of(length, 8);
    set_bytes(whole.substr(0, 40 + 2 * record) + head + bytes_of(masked(head), 4) + std::string(64, 'x'));
    write_steps(1, 0, 3);
    EXPECT_EQ(curve(), two) << length;
  }

  set_bytes(whole.substr(0, 40 + 2 * record) + framed(std::string(64, '\xFF')));  // whole, and no event
  write_steps(1, 0, 3);
  EXPECT_EQ(curve(), two);

  set_bytes(whole.substr(40));  // the version is lost
  write_steps(1, 0, 2);
  EXPECT_EQ(curve(), two);

  set_bytes(whole + whole.substr(40));  // every step twice
  write_steps(1, 0, 3);
  EXPECT_EQ(bytes(), whole);

  std::string flipped = whole;
  flipped[40 + record + 30] ^= 1;  // inside the data of step 2
  set_bytes(flipped);
  write_steps(1, 0, 3);
  EXPECT_EQ(curve(), (Curve{{1, 1}, {3, 3}}));

  flipped[40 + 2 * record + 8] ^= 1;  // the checksum of step 3's length: no reader can pass it
  set_bytes(flipped);
  write_steps(1, 0, 3);
  EXPECT_EQ(curve(), (Curve{{1, 1}}));
}

TEST_F(TensorBoard, AFileThatVanishedIsAnError) {
  auto log = TensorBoardLog::open((folder_ / "tb").string(), 0);
  ASSERT_TRUE(log.ok());
  std::filesystem::remove(path_);
  const Status status = log->append(StepLine{});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::storage_write);
  EXPECT_EQ(status.error().culprit, path_);
}

}  // namespace
}  // namespace penteract::train
