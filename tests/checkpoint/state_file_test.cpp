#include "penteract/checkpoint/state_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penteract/base/hash.h"

namespace penteract::checkpoint {
namespace {

using ::testing::HasSubstr;

StateFile sample() {
  StateFile file;
  file.state = {10, 20480, 80, UINT64_MAX, 2, "dp=2", "[run]\nname = \"na\xc3\xafve\"\n", R"({"loss":1.5})"};
  file.parts = {{0, 100, std::string(32, 'a'), 1000}, {1, 101, std::string(32, 'b'), 1001}};
  return file;
}

// The same text with its checksum made right again.
std::string resealed(std::string text, const std::string& from, const std::string& to) {
  text.replace(text.find(from), from.size(), to);
  const size_t line = text.find("  \"checksum\"");
  const size_t end = text.find('\n', line) + 1;
  std::string bare = text.substr(0, line) + text.substr(end);
  return text.replace(text.find(": \"", line) + 3, 32, hash128_hex(bare.data(), bare.size()));
}

TEST(StateFile, RoundTrip) {
  const auto text = encode_state(sample());
  ASSERT_TRUE(text.ok());
  const auto back = decode_state(*text, "state.json");
  ASSERT_TRUE(back.ok()) << back.error().message();
  const SharedState& s = back->state;
  EXPECT_EQ(s.step, 10);
  EXPECT_EQ(s.tokens, 20480);
  EXPECT_EQ(s.samples, 80);
  EXPECT_EQ(s.seed, UINT64_MAX);
  EXPECT_EQ(s.layout, "dp=2");
  EXPECT_EQ(s.recipe_toml, sample().state.recipe_toml);
  EXPECT_EQ(s.extra_json, R"({"loss":1.5})");
  ASSERT_EQ(back->parts.size(), 2u);
  EXPECT_EQ(back->parts[1].catalog_checksum, std::string(32, 'b'));
  EXPECT_EQ(back->parts[1].data_bytes, 1001u);
}

TEST(StateFile, EveryFlippedByteAndEveryCutIsCaught) {
  const std::string text = *encode_state(sample());
  for (size_t i = 0; i < text.size(); ++i) {
    for (const int mask : {1, 0x20}) {
      std::string changed = text;
      changed[i] = static_cast<char>(changed[i] ^ mask);
      EXPECT_FALSE(decode_state(changed, "x").ok()) << i << ' ' << changed[i];
    }
    EXPECT_FALSE(decode_state(text.substr(0, i), "x").ok()) << i;
  }
  EXPECT_FALSE(decode_state(text + " ", "x").ok());
  EXPECT_EQ(decode_state("[1]", "x").error().code, ErrorCode::checkpoint_damaged);
}

TEST(StateFile, RefusesWhatDoesNotFit) {
  const std::string text = *encode_state(sample());
  ASSERT_TRUE(decode_state(resealed(text, "\"step\": 10", "\"step\": 11"), "x").ok());
  const auto refusal = [&](const std::string& from, const std::string& to) {
    const auto result = decode_state(resealed(text, from, to), "x");
    return result.ok() ? "accepted" : result.error().message();
  };
  EXPECT_THAT(refusal("\"version\": 1", "\"version\": 2"), HasSubstr("version 2, this program reads 1"));
  EXPECT_THAT(refusal("\"num_ranks\": 2", "\"num_ranks\": 3"), HasSubstr("one part for each of 3 ranks"));
  EXPECT_THAT(refusal("\"step\": 10", "\"step\": -1"), HasSubstr("key step"));
  EXPECT_THAT(refusal("\"step\": 10", "\"step\": 1.5"), HasSubstr("key step"));
  EXPECT_THAT(refusal("\"tokens\"", "\"tokenz\""), HasSubstr("key tokens"));
  EXPECT_THAT(refusal("rank-00001.catalog", "rank-00000.catalog"), HasSubstr("not that of rank 1"));
  EXPECT_THAT(refusal("18446744073709551615", "99999999999999999999"), HasSubstr("seed"));
}

TEST(StateFile, TextThatIsNotUtf8IsRefused) {
  StateFile file = sample();
  file.state.recipe_toml = "\xff";
  EXPECT_EQ(encode_state(file).error().code, ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace penteract::checkpoint
