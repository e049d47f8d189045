// Ids against those of Hugging Face tokenizers (tests/golden/make_tokenizer_golden.py), and what is refused.
#include "penteract/data/tokenizer.h"

#include <gtest/gtest.h>

#include <thread>

#include "data/temp_folder.h"
#include "penteract/base/file.h"
#include "penteract/base/json.h"

namespace penteract::data {
namespace {

const std::string kGolden = PENT_SOURCE_DIR "/tests/golden/tokenizer/";

std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i < hex.size(); i += 2)
    bytes.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return bytes;
}

std::unique_ptr<Tokenizer> golden(const std::string& name) {
  return name == "tiny" ? or_throw(Tokenizer::load(kGolden + "tiny.tiktoken", "qwen3"))
                        : or_throw(Tokenizer::load(kGolden + name + ".json", ""));
}

class TokenizerGolden : public ::testing::TestWithParam<const char*> {};

TEST_P(TokenizerGolden, IdsAreThoseOfHuggingFace) {
  const auto tokenizer = golden(GetParam());
  const Json all = or_throw(read_json(kGolden + "cases.json"));
  ASSERT_GT(all[GetParam()].size(), 50u);
  size_t special_cases = 0;
  for (const auto& one : all[GetParam()]) {
    const std::string text = from_hex(one["text"].get<std::string>());
    const auto ids = one["ids"].get<std::vector<int32_t>>();
    EXPECT_EQ(or_throw(tokenizer->encode(text)), ids) << text;
    const auto as_text = one.contains("as_text") ? one["as_text"].get<std::vector<int32_t>>() : ids;
    EXPECT_EQ(or_throw(tokenizer->encode(text, Specials::as_text)), as_text) << text;
    special_cases += one.contains("as_text");
  }
  EXPECT_GT(special_cases, 0u);
}

INSTANTIATE_TEST_SUITE_P(All, TokenizerGolden, ::testing::Values("gpt2", "prefix", "qwen", "deep", "tiny"));

TEST(Tokenizer, DecodeGivesTheTextBack) {
  const auto tokenizer = golden("qwen");
  for (const std::string text : {"Hello <|im_end|> wörld\n\n 👍🏽 的", "", "<think>x</think>"}) {
    EXPECT_EQ(or_throw(tokenizer->decode(or_throw(tokenizer->encode(text)))), text);
  }
  // A cut character.
  const auto ids = or_throw(tokenizer->encode("\u2603"));
  ASSERT_GT(ids.size(), 1u);
  EXPECT_EQ(or_throw(tokenizer->decode(std::span(ids).first(1))), "\uFFFD");
  const std::vector<int32_t> beyond = {static_cast<int32_t>(tokenizer->vocab_size())};
  EXPECT_EQ(tokenizer->decode(beyond).error().code, ErrorCode::tokenizer_vocab);
  EXPECT_EQ(tokenizer->decode(std::vector<int32_t>{-1}).error().code, ErrorCode::tokenizer_vocab);
}

TEST(Tokenizer, QwenSpecialTokensFollowTheRanks) {
  const auto tokenizer = golden("tiny");
  const auto first = tokenizer->token_id("<|endoftext|>");
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(tokenizer->vocab_size(), *first + 26);
  EXPECT_EQ(tokenizer->token_id("<|im_end|>"), *first + 2);
  EXPECT_EQ(tokenizer->token_id("</think>"), *first + 25);
  EXPECT_EQ(tokenizer->token_id("no such token"), std::nullopt);
}

TEST(Tokenizer, OneVeryLongWordIsNotQuadratic) {
  const auto tokenizer = golden("qwen");
  std::string text;
  for (int64_t i = 0; i < 400'000; ++i) text += static_cast<char>('a' + (i * i / 7 + i) % 26);
  EXPECT_EQ(or_throw(tokenizer->decode(or_throw(tokenizer->encode(text)))), text);
  const std::string blanks = std::string(300'000, ' ') + "x";  // every space is given back once
  EXPECT_EQ(or_throw(tokenizer->decode(or_throw(tokenizer->encode(blanks)))), blanks);
}

TEST(Tokenizer, ThreadsGetTheSameIds) {
  const auto tokenizer = golden("qwen");
  std::string text;
  for (int i = 0; i < 500; ++i) text += "word" + std::to_string(i * 7919 % 300) + " é的 <|im_end|>";
  const auto expected = or_throw(tokenizer->encode(text));
  std::vector<std::vector<int32_t>> got(4);
  {
    std::vector<std::jthread> threads;
    for (auto& ids : got) threads.emplace_back([&] { ids = or_throw(tokenizer->encode(text)); });
  }
  for (const auto& ids : got) EXPECT_EQ(ids, expected);
}

TEST(Tokenizer, FingerprintDependsOnTheFile) {
  EXPECT_EQ(golden("qwen")->fingerprint(), golden("qwen")->fingerprint());
  EXPECT_NE(golden("qwen")->fingerprint(), golden("gpt2")->fingerprint());
}

// A change to the golden tokenizer.json, and what the loader says to it.
struct Refusal {
  const char* name;
  void (*change)(Json&);
  ErrorCode code;
  const char* says;
};

class TokenizerRefusal : public ::testing::TestWithParam<Refusal> {};

TEST_P(TokenizerRefusal, NamesWhatItCannotDo) {
  Json json = or_throw(read_json(kGolden + "qwen.json"));
  GetParam().change(json);
  const TempFolder folder;
  const auto loaded = Tokenizer::load(folder.write("tokenizer.json", json.dump()), "");
  ASSERT_FALSE(loaded.ok());
  EXPECT_EQ(loaded.error().code, GetParam().code) << loaded.error().message();
  EXPECT_NE(loaded.error().what.find(GetParam().says), std::string::npos) << loaded.error().message();
  EXPECT_NE(loaded.error().culprit.find("tokenizer.json"), std::string::npos);
}

Json& split_of(Json& j) { return j["pre_tokenizer"]["pretokenizers"][0]; }
void set_pattern(Json& j, const char* pattern) { split_of(j)["pattern"] = {{"Regex", pattern}}; }

INSTANTIATE_TEST_SUITE_P(
    All, TokenizerRefusal,
    ::
        testing::Values(Refusal{"Digits",
                                [](Json& j) {
                                  split_of(j) = {{"type", "Digits"}, {"individual_digits", true}};
                                },
                                ErrorCode::tokenizer_unsupported, "Digits"},
                        Refusal{"Metaspace",
                                [](Json& j) {
                                  j["pre_tokenizer"] = {{"type", "Metaspace"}};
                                },
                                ErrorCode::tokenizer_unsupported, "Metaspace"},
                        Refusal{"NoByteLevel", [](Json& j) { j["pre_tokenizer"]["pretokenizers"].erase(1); },
                                ErrorCode::tokenizer_unsupported, "ByteLevel"},
                        Refusal{"Merged", [](Json& j) { split_of(j)["behavior"] = "MergedWithNext"; },
                                ErrorCode::tokenizer_unsupported, "MergedWithNext"},
                        Refusal{"Invert", [](Json& j) { split_of(j)["invert"] = true; },
                                ErrorCode::tokenizer_unsupported, "invert"},
                        Refusal{"Nfkc",
                                [](Json& j) {
                                  j["normalizer"] = {{"type", "NFKC"}};
                                },
                                ErrorCode::tokenizer_unsupported, "NFKC"},
                        Refusal{"Unigram", [](Json& j) { j["model"]["type"] = "Unigram"; },
                                ErrorCode::tokenizer_unsupported, "Unigram"},
                        Refusal{"Dropout", [](Json& j) { j["model"]["dropout"] = 0.1; },
                                ErrorCode::tokenizer_unsupported, "dropout"},
                        Refusal{"Prefix", [](Json& j) { j["model"]["continuing_subword_prefix"] = "##"; },
                                ErrorCode::tokenizer_unsupported, "continuing_subword_prefix"},
                        Refusal{"ByteFallback", [](Json& j) { j["model"]["byte_fallback"] = true; },
                                ErrorCode::tokenizer_unsupported, "byte_fallback"},
                        Refusal{"Processor",
                                [](Json& j) {
                                  j["post_processor"] = {{"type", "RobertaProcessing"}};
                                },
                                ErrorCode::tokenizer_unsupported, "RobertaProcessing"},
                        Refusal{"Decoder", [](Json& j) { j["decoder"] = nullptr; }, ErrorCode::tokenizer_unsupported,
                                "decoder"},
                        Refusal{"Lstrip", [](Json& j) { j["added_tokens"][0]["lstrip"] = true; },
                                ErrorCode::tokenizer_unsupported, "lstrip"},
                        Refusal{"SingleWord", [](Json& j) { j["added_tokens"][1]["single_word"] = true; },
                                ErrorCode::tokenizer_unsupported, "single_word"},
                        Refusal{"ByteMissing", [](Json& j) { j["model"]["vocab"].erase("!"); },
                                ErrorCode::tokenizer_unsupported, "0x21"},
                        Refusal{"WordBoundary", [](Json& j) { set_pattern(j, R"(\b\p{L}+)"); },
                                ErrorCode::tokenizer_unsupported, "\\b"},
                        Refusal{"Empty", [](Json& j) { set_pattern(j, R"(\p{L}*)"); }, ErrorCode::tokenizer_unsupported,
                                "nothing"},
                        Refusal{"Anchor", [](Json& j) { set_pattern(j, "^a"); }, ErrorCode::tokenizer_unsupported, "^"},
                        Refusal{"Script", [](Json& j) { set_pattern(j, R"(\p{Han}+)"); },
                                ErrorCode::tokenizer_unsupported, "Han"},
                        Refusal{"HexDigit", [](Json& j) { set_pattern(j, R"(\h+)"); }, ErrorCode::tokenizer_unsupported,
                                "\\h"},
                        Refusal{"Fold", [](Json& j) { set_pattern(j, R"((?i:'ss))"); },
                                ErrorCode::tokenizer_unsupported, "ss"},
                        Refusal{"Unclosed", [](Json& j) { set_pattern(j, "(?:a"); }, ErrorCode::tokenizer_unsupported,
                                "end"},
                        Refusal{"IdTwice", [](Json& j) { j["model"]["vocab"]["zzzz"] = 0; },
                                ErrorCode::tokenizer_malformed, "two tokens"},
                        Refusal{"IdHuge", [](Json& j) { j["model"]["vocab"]["zzzz"] = int64_t{1} << 40; },
                                ErrorCode::tokenizer_malformed, "zzzz"},
                        Refusal{"IdNegative", [](Json& j) { j["added_tokens"][0]["id"] = -1; },
                                ErrorCode::tokenizer_malformed, "-1"},
                        Refusal{"MergeUnknown", [](Json& j) { j["model"]["merges"].push_back("zz qq"); },
                                ErrorCode::tokenizer_malformed, "zz"},
                        Refusal{"MergeOdd", [](Json& j) { j["model"]["merges"].push_back("a b c"); },
                                ErrorCode::tokenizer_malformed, "merge"},
                        Refusal{"AddedTwice", [](Json& j) { j["added_tokens"].push_back(j["added_tokens"][0]); },
                                ErrorCode::tokenizer_malformed, "two tokens"},
                        Refusal{
                            "AddedTwiceFromVocab",
                            [](Json& j) {
                              for (int i = 0; i < 2; ++i) j["added_tokens"].push_back({{"id", 0}, {"content", "!"}});
                            },
                            ErrorCode::tokenizer_malformed, "twice"},
                        Refusal{"NoModel", [](Json& j) { j.erase("model"); }, ErrorCode::tokenizer_unsupported,
                                "model"}),
    [](const auto& one) { return std::string(one.param.name); });

TEST(Tokenizer, PatternWithoutBoundStopsWithAnError) {
  Json json = or_throw(read_json(kGolden + "qwen.json"));
  set_pattern(json, R"((?:a+)+b|\p{L}+)");
  const TempFolder folder;
  const auto tokenizer = or_throw(Tokenizer::load(folder.write("tokenizer.json", json.dump()), ""));
  const auto ids = tokenizer->encode(std::string(64, 'a'));
  ASSERT_FALSE(ids.ok());
  EXPECT_EQ(ids.error().code, ErrorCode::tokenizer_unsupported);
}

TEST(Tokenizer, KindsAndMissingFiles) {
  const TempFolder folder;
  EXPECT_EQ(Tokenizer::load(folder.path("none.json"), "").error().code, ErrorCode::tokenizer_missing);
  const auto no_kind = Tokenizer::load(kGolden + "tiny.tiktoken", "");
  ASSERT_FALSE(no_kind.ok());
  EXPECT_EQ(no_kind.error().code, ErrorCode::invalid_argument);
  EXPECT_NE(no_kind.error().remedy.find("qwen3"), std::string::npos);
  EXPECT_EQ(Tokenizer::load(kGolden + "tiny.tiktoken", "llama").error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(Tokenizer::load(kGolden + "qwen.json", "qwen3").error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(Tokenizer::load(folder.write("cut.json", "{\"model\": {"), "").error().code,
            ErrorCode::tokenizer_malformed);
  EXPECT_EQ(or_throw(Tokenizer::load(kGolden + "tiny.tiktoken", "qwen"))->fingerprint(), golden("tiny")->fingerprint());
}

TEST(Tokenizer, BadTiktokenLinesAreNamed) {
  const TempFolder folder;
  const std::string good = or_throw(read_file(kGolden + "tiny.tiktoken"));
  const auto load = [&](const std::string& bytes) {
    return Tokenizer::load(folder.write("bad.tiktoken", bytes), "qwen3").take_error();
  };
  for (const std::string bad : {"!!!! 480\n", "QUJD\n", "QUJD x\n", "QUJD 999\n", "IQ== 480\n", "QUJ 480\n"}) {
    const Error error = load(good + bad);
    EXPECT_EQ(error.code, ErrorCode::tokenizer_malformed) << bad;
    EXPECT_NE(error.culprit.find("bad.tiktoken:481"), std::string::npos) << bad << error.message();
  }
  // "qqqq": no two tokens make it.
  EXPECT_NE(load(good + "cXFxcQ== 480\n").what.find("480"), std::string::npos);
  EXPECT_EQ(load(good.substr(good.find('\n') + 1)).code, ErrorCode::tokenizer_malformed);
}

TEST(Tokenizer, EndOfDocumentToken) {
  const TempFolder folder;
  const std::string path = folder.write("tokenizer.json", or_throw(read_file(kGolden + "qwen.json")));
  const auto tokenizer = or_throw(Tokenizer::load(path, ""));
  const auto id = [&](const char* token) { return tokenizer->token_id(token).value(); };
  EXPECT_EQ(or_throw(eod_id(*tokenizer, path, "")), id("<|endoftext|>"));
  EXPECT_EQ(or_throw(eod_id(*tokenizer, path, "<|im_end|>")), id("<|im_end|>"));
  EXPECT_EQ(eod_id(*tokenizer, path, "<none>").error().code, ErrorCode::tokenizer_vocab);
  folder.write("tokenizer_config.json", R"({"eos_token": "<|im_end|>"})");
  EXPECT_EQ(or_throw(eod_id(*tokenizer, path, "")), id("<|im_end|>"));
  EXPECT_EQ(or_throw(eod_id(*tokenizer, folder.path(""), "")), id("<|im_end|>"));
  folder.write("tokenizer_config.json", R"({"eos_token": {"content": "<|im_start|>"}})");
  EXPECT_EQ(or_throw(eod_id(*tokenizer, path, "")), id("<|im_start|>"));
  folder.write("tokenizer_config.json", R"({"eos_token": "<none>"})");
  EXPECT_EQ(eod_id(*tokenizer, path, "").error().code, ErrorCode::tokenizer_vocab);
  folder.write("tokenizer_config.json", R"({"eos_token": null})");
  EXPECT_EQ(or_throw(eod_id(*tokenizer, path, "")), id("<|endoftext|>"));
  folder.write("tokenizer_config.json", R"({"eos_token": 7})");
  EXPECT_EQ(eod_id(*tokenizer, path, "").error().code, ErrorCode::tokenizer_malformed);
}

}  // namespace
}  // namespace penteract::data
