#include "penteract/checkpoint/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fixture.h"

namespace penteract::checkpoint {
namespace {

using ::testing::HasSubstr;

// A file of this header text and this many bytes of data.
std::string raw_file(const std::string& json, size_t data_bytes, int64_t claimed = -1) {
  const uint64_t length = claimed < 0 ? json.size() : static_cast<uint64_t>(claimed);
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(length >> (8 * i) & 0xff);
  return bytes + json + std::string(data_bytes, '\1');
}

std::string refusal(const std::string& bytes) {
  const TempDir dir;
  spill(dir / "x.safetensors", bytes);
  const auto file = SafetensorsFile::open(dir / "x.safetensors");
  if (file.ok()) return "accepted";
  EXPECT_EQ(file.error().code, ErrorCode::file_malformed);
  EXPECT_THAT(file.error().message(), HasSubstr("x.safetensors"));
  return file.error().message();
}

TEST(Safetensors, ReadsWhatPythonWrote) {
  const auto file = SafetensorsFile::open(PENT_SOURCE_DIR "/tests/golden/checkpoint/python.safetensors");
  ASSERT_TRUE(file.ok()) << file.error().message();
  EXPECT_EQ(file->metadata().at("written by"), "Python");
  EXPECT_EQ(file->tensors().size(), 12u);
  const auto expect = [&](const std::string& name, at::ScalarType type, const std::vector<int64_t>& shape) {
    const TensorEntry* entry = file->find(name);
    ASSERT_NE(entry, nullptr) << name;
    EXPECT_EQ(entry->shape, shape) << name;
    const auto tensor = file->read(*entry);
    ASSERT_TRUE(tensor.ok()) << tensor.error().message();
    EXPECT_EQ(tensor->scalar_type(), type) << name;
    at::Tensor want = global_tensor(shape, at::kLong, -3);
    if (type == at::kByte) want = want + 3;
    if (type == at::kBool) want = (want + 3).remainder(2);
    EXPECT_TRUE(tensor->to(at::kLong).equal(want)) << name;
  };
  expect("double", at::kDouble, {2, 3});
  expect("model.layers.0.weight", at::kFloat, {3, 5});
  expect("bf16", at::kBFloat16, {7});
  expect("half", at::kHalf, {2, 2});
  expect("long", at::kLong, {3});
  expect("int", at::kInt, {});
  expect("short", at::kShort, {5});
  expect("char", at::kChar, {3});
  expect("byte", at::kByte, {3});
  expect("bool", at::kBool, {4});
  expect("empty", at::kFloat, {0, 4});
  expect("na\xc3\xafve \"name\"\n", at::kFloat, {1});
  EXPECT_EQ(file->find("absent"), nullptr);
}

TEST(Safetensors, WritesAlignedDataThatItReadsBack) {
  const TempDir dir;
  const std::string path = dir / "out.safetensors";
  const std::vector<TensorSpec> specs = {{"wide", Dtype::f64, {3}},     {"odd \"name\"", Dtype::f32, {3, 1}},
                                         {"scalar", Dtype::f32, {}},    {"half", Dtype::bf16, {5}},
                                         {"none", Dtype::bf16, {0, 9}}, {"bytes", Dtype::u8, {3}}};
  auto writer = SafetensorsWriter::create(path, specs, {{"key", "value"}});
  ASSERT_TRUE(writer.ok());
  std::vector<at::Tensor> tensors;
  for (const TensorSpec& spec : specs) {
    tensors.push_back(global_tensor(spec.shape, scalar_type(spec.dtype), 5));
    ASSERT_TRUE(writer->append(tensors.back()).ok());
  }
  ASSERT_TRUE(writer->close().ok());
  const auto file = SafetensorsFile::open(path);
  ASSERT_TRUE(file.ok()) << file.error().message();
  EXPECT_EQ(file->header_bytes() % 64, 0u);
  EXPECT_EQ(file->header_bytes(), writer->header_bytes());
  EXPECT_EQ(file->metadata().at("key"), "value");
  for (size_t i = 0; i < specs.size(); ++i) {
    const TensorEntry* entry = file->find(specs[i].name);
    ASSERT_NE(entry, nullptr);
    EXPECT_EQ(entry->offset_bytes % static_cast<uint64_t>(dtype_bytes(entry->dtype)), 0u) << entry->name;
    EXPECT_TRUE(file->read(*entry)->equal(tensors[i])) << entry->name;
  }
}

TEST(Safetensors, ReadsSlicesAndCasts) {
  const auto file = SafetensorsFile::open(PENT_SOURCE_DIR "/tests/golden/checkpoint/python.safetensors");
  ASSERT_TRUE(file.ok());
  at::Tensor out = at::zeros({2, 2}, at::TensorOptions(at::kBFloat16));
  ASSERT_TRUE(file->read(*file->find("model.layers.0.weight"), {{1, 2}, {2, 2}}, out).ok());
  EXPECT_TRUE(out.to(at::kFloat).equal(part_of(global_tensor({3, 5}, at::kFloat, -3), {{1, 2}, {2, 2}})));
}

TEST(Safetensors, RefusesHeadersThatDoNotFitTheFile) {
  EXPECT_THAT(refusal(""), HasSubstr("too few"));
  EXPECT_THAT(refusal(std::string(7, '\0')), HasSubstr("too few"));
  EXPECT_THAT(refusal(raw_file("{}", 0, 3)), HasSubstr("claims a header of 3"));
  EXPECT_THAT(refusal(raw_file("{}", 0, INT64_MAX)), HasSubstr("claims a header"));
  EXPECT_THAT(refusal(raw_file("{}", 0, 200'000'000)), HasSubstr("the limit is 100000000"));
  EXPECT_THAT(refusal(raw_file("", 0)), HasSubstr("does not begin with {"));
  EXPECT_THAT(refusal(raw_file(" {}", 0)), HasSubstr("does not begin with {"));
  EXPECT_THAT(refusal(raw_file("{]", 0)), HasSubstr("not JSON"));
  EXPECT_THAT(refusal(raw_file("{\"a\":" + std::string(10000, '['), 0)), HasSubstr("deeper"));
  EXPECT_THAT(refusal(raw_file("{}", 4)), HasSubstr("has 4 bytes of data, its tensors fill 0"));
  EXPECT_THAT(refusal(raw_file(R"({"__metadata__":{"a":1}})", 0)), HasSubstr("__metadata__ key a"));
  EXPECT_THAT(refusal(raw_file(R"({"__metadata__":[]})", 0)), HasSubstr("__metadata__"));
}

TEST(Safetensors, RefusesHostileTensors) {
  const auto one = [](const std::string& fields, size_t data_bytes) {
    return refusal(raw_file("{\"t\":{" + fields + "}}", data_bytes));
  };
  EXPECT_EQ(one(R"("dtype":"F32","shape":[1],"data_offsets":[0,4])", 4), "accepted");
  EXPECT_EQ(one(R"("dtype":"F32","shape":[],"data_offsets":[0,4])", 4), "accepted");
  EXPECT_EQ(one(R"("dtype":"F32","shape":[5,0],"data_offsets":[0,0])", 0), "accepted");
  EXPECT_THAT(one(R"("dtype":"F31","shape":[1],"data_offsets":[0,4])", 4), HasSubstr("none of F64, F32"));
  EXPECT_THAT(one(R"("dtype":7,"shape":[1],"data_offsets":[0,4])", 4), HasSubstr("dtype"));
  EXPECT_THAT(one(R"("dtype":"F32","shape":[1])", 4), HasSubstr("exactly dtype, shape and data_offsets"));
  EXPECT_THAT(one(R"("dtype":"F32","shape":[1],"data_offsets":[0,4],"x":0)", 4), HasSubstr("exactly"));
  EXPECT_THAT(one(R"("dtype":"F32","shape":1,"data_offsets":[0,4])", 4), HasSubstr("not a list"));
  EXPECT_THAT(one(R"("dtype":"F32","shape":[-1],"data_offsets":[0,4])", 4), HasSubstr("dim"));
  EXPECT_THAT(one(R"("dtype":"F32","shape":[1.0],"data_offsets":[0,4])", 4), HasSubstr("dim"));
  EXPECT_THAT(one(R"("dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,4])", 4), HasSubstr("dim"));
  EXPECT_THAT(one(R"("dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0])", 0), HasSubstr("product"));
  EXPECT_THAT(one(R"("dtype":"F32","shape":[0,4611686018427387904,4],"data_offsets":[0,0])", 0), HasSubstr("product"));
  EXPECT_THAT(one(R"("dtype":"F32","shape":[1],"data_offsets":[0,8])", 8), HasSubstr("8 bytes by its offsets, 4"));
  EXPECT_THAT(one(R"("dtype":"F32","shape":[1],"data_offsets":[0,4])", 3), HasSubstr("the file has 3 bytes"));
  EXPECT_THAT(one(R"("dtype":"F32","shape":[1],"data_offsets":[4,0])", 4), HasSubstr("data_offsets 4 to 0"));
  EXPECT_THAT(one(R"("dtype":"F32","shape":[1],"data_offsets":[0,4,8])", 4), HasSubstr("two whole numbers"));
  EXPECT_THAT(one(R"("dtype":"F32","shape":[1],"data_offsets":[-4,0])", 4), HasSubstr("two whole numbers"));
  std::string dims = "1";
  for (int i = 0; i < 40; ++i) dims += ",1";
  EXPECT_THAT(one("\"dtype\":\"F32\",\"shape\":[" + dims + "],\"data_offsets\":[0,4]", 4), HasSubstr("too many dims"));
}

TEST(Safetensors, RefusesOverlapsHolesAndDoubleNames) {
  const auto two = [](const std::string& a, const std::string& b, size_t data_bytes) {
    const std::string head = R"(":{"dtype":"F32","shape":[2],"data_offsets":)";
    return refusal(raw_file("{\"a" + head + a + "},\"b" + head + b + "}}", data_bytes));
  };
  EXPECT_EQ(two("[8,16]", "[0,8]", 16), "accepted");
  EXPECT_THAT(two("[0,8]", "[4,12]", 12), HasSubstr("overlap"));
  EXPECT_THAT(two("[0,8]", "[0,8]", 8), HasSubstr("overlap"));
  EXPECT_THAT(two("[0,8]", "[12,20]", 20), HasSubstr("a hole"));
  EXPECT_THAT(two("[4,12]", "[12,20]", 20), HasSubstr("a hole"));
  EXPECT_THAT(two("[0,8]", "[8,16]", 20), HasSubstr("tensors fill 16"));
  const std::string entry = R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  EXPECT_THAT(refusal(raw_file("{\"t\":" + entry + ",\"t\":" + entry + "}", 4)), HasSubstr("twice"));
}

TEST(Safetensors, RefusesABoolThatIsNeither) {
  const TempDir dir;
  spill(dir / "b.safetensors", raw_file(R"({"t":{"dtype":"BOOL","shape":[1],"data_offsets":[0,1]}})", 0) + "\2");
  const auto file = SafetensorsFile::open(dir / "b.safetensors");
  ASSERT_TRUE(file.ok());
  EXPECT_THAT(file->read(file->tensors()[0]).error().message(), HasSubstr("neither 0 nor 1"));
}

TEST(Safetensors, AMissingFileIsNamed) {
  const auto file = SafetensorsFile::open("/nonexistent/x.safetensors");
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().code, ErrorCode::file_missing);
}

}  // namespace
}  // namespace penteract::checkpoint
