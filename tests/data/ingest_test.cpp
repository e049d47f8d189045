#include "penteract/data/ingest.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>

#include "data/temp_folder.h"

namespace penteract::data {
namespace {

class Ingest : public ::testing::Test {
 protected:
  Ingest() : tokenizer_(or_throw(Tokenizer::load(PENT_SOURCE_DIR "/tests/golden/tokenizer/qwen.json", ""))) {
    options_.tokenizer = tokenizer_.get();
    options_.eod = eod_;
    options_.cache_dir = folder_.path("cache");
  }
  Result<std::vector<OpenSource>> open(const std::vector<std::string>& paths) {
    return open_sources(paths, options_, tokenizer_->vocab_size());
  }
  std::vector<int32_t> ids(const std::string& text) const {
    auto out = or_throw(tokenizer_->encode(text));
    out.push_back(eod_);
    return out;
  }
  static std::vector<int32_t> all(const IndexedDataset& d) {
    std::vector<int32_t> out(static_cast<size_t>(d.num_tokens()));
    or_throw(d.read_tokens(0, d.num_tokens(), out.data()));
    return out;
  }
  Error jsonl_error(const std::string& bytes) {
    auto opened = open({folder_.write("bad.jsonl", bytes)});
    EXPECT_FALSE(opened.ok());
    return opened.ok() ? Error{} : opened.take_error();
  }

  TempFolder folder_;
  std::unique_ptr<Tokenizer> tokenizer_;
  int32_t eod_ = 3;
  IngestOptions options_;
};

TEST_F(Ingest, ATextFileIsOneDocumentAndAJsonLineOne) {
  const auto sources =
      or_throw(open({folder_.write("a.txt", "one\ntwo\n"),
                     folder_.write("b.jsonl", "{\"text\": \"one\"}\n{\"id\": 1, \"text\": \"two é\"}")}));
  EXPECT_EQ(sources[0].dataset->num_documents(), 1);
  EXPECT_EQ(all(*sources[0].dataset), ids("one\ntwo\n"));
  EXPECT_EQ(sources[1].dataset->num_documents(), 2);
  EXPECT_EQ(or_throw(sources[1].dataset->document(0)), ids("one"));
  EXPECT_EQ(or_throw(sources[1].dataset->document(1)), ids("two é"));
  EXPECT_EQ(sources[1].counts.num_tokens, sources[1].dataset->num_tokens());
}

// A1: blank documents first, in the middle and last change nothing but the count.
TEST_F(Ingest, BlankDocumentsAreSkippedAndCounted) {
  const auto with = or_throw(open({folder_.write("with.jsonl",
                                                 "{\"text\": \"\"}\n\n{\"text\": \"a b\"}\n{\"text\": \" \\n\\t\"}\n   "
                                                 "\n{\"text\": \"c\"}\n{\"text\": \"\"}\n")}));
  const auto without = or_throw(open({folder_.write("without.jsonl", "{\"text\": \"a b\"}\n{\"text\": \"c\"}\n")}));
  EXPECT_EQ(all(*with[0].dataset), all(*without[0].dataset));
  EXPECT_EQ(with[0].counts.text.empty_documents, 5);
  EXPECT_EQ(with[0].counts.text.documents, 2);
  EXPECT_EQ(without[0].counts.text.empty_documents, 0);
}

TEST_F(Ingest, ByteOrderMarksAndLineEnds) {
  const auto sources =
      or_throw(open({folder_.write("a.jsonl", "\xEF\xBB\xBF\r\n{\"text\": \"a\"}\r\n{\"text\": \"b\\r\\n\"}\r\n"),
                     folder_.write("b.txt", "\xEF\xBB\xBFx\r\ny")}));
  EXPECT_EQ(or_throw(sources[0].dataset->document(0)), ids("a"));
  EXPECT_EQ(or_throw(sources[0].dataset->document(1)), ids("b\r\n"));
  EXPECT_EQ(all(*sources[1].dataset), ids("x\r\ny"));
}

// A18: what is wrong with a line is said with file and line.
TEST_F(Ingest, BadLinesAreNamed) {
  const std::string good = "{\"text\": \"a\"}\n";
  for (const std::string bad : {"{\"text\": \"cut", "not json", "[\"text\"]", "{\"body\": \"a\"}", "{\"text\": 5}",
                                "{\"text\": \"\\ud800 lone\"}", "{\"text\": \"\xff\"}", "{\"text\": \"a\"} x"}) {
    const Error error = jsonl_error(good + good + bad);
    EXPECT_EQ(error.code, ErrorCode::text_malformed) << bad;
    EXPECT_EQ(error.culprit, folder_.path("bad.jsonl:3")) << bad;
    EXPECT_FALSE(error.remedy.empty());
  }
  EXPECT_NE(jsonl_error("{\"body\": \"a\"}").what.find("\"body\""), std::string::npos);
  EXPECT_EQ(TempFolder::num_files(options_.cache_dir), 0u);
}

TEST_F(Ingest, SkippingBadLinesIsAskedForAndCounted) {
  options_.documents.skip_malformed = true;
  const auto path = folder_.write("a.jsonl", "{\"text\": \"a\"}\nbad\n{\"text\": \"b\"}\n{\"text\": \"c");
  const auto first = or_throw(open({path}));
  EXPECT_EQ(first[0].counts.text.malformed_lines, 2);
  EXPECT_EQ(first[0].dataset->num_documents(), 2);
  const auto again = or_throw(open({path}));
  EXPECT_TRUE(again[0].from_cache);
  EXPECT_EQ(again[0].counts.text.malformed_lines, 2);
  options_.documents.skip_malformed = false;
  EXPECT_FALSE(open({path}).ok());
}

TEST_F(Ingest, AnotherKeyMayHoldTheText) {
  options_.documents.text_key = "body";
  const auto sources = or_throw(open({folder_.write("a.jsonl", "{\"body\": \"a\"}\n")}));
  EXPECT_EQ(all(*sources[0].dataset), ids("a"));
}

TEST_F(Ingest, MissingEmptyAndUnknownFiles) {
  const auto code = [&](const std::string& path) { return open({path}).error().code; };
  EXPECT_EQ(code(folder_.path("none.txt")), ErrorCode::dataset_missing);
  EXPECT_EQ(code(folder_.path("none.bin")), ErrorCode::dataset_missing);
  EXPECT_EQ(code(folder_.path("a.parquet")), ErrorCode::recipe_unsupported);
  for (const std::string text : {"", " \n\t\r\n", "\xEF\xBB\xBF"}) {
    const auto opened = open({folder_.write("empty.txt", text)});
    ASSERT_FALSE(opened.ok());
    EXPECT_EQ(opened.error().code, ErrorCode::dataset_empty);
    EXPECT_EQ(opened.error().culprit, folder_.path("empty.txt"));
    EXPECT_FALSE(opened.error().remedy.empty());
  }
  EXPECT_EQ(code(folder_.write("empty.jsonl", "\n{\"text\": \"\"}\n")), ErrorCode::dataset_empty);
}

TEST_F(Ingest, ASecondRunReadsTheCache) {
  const auto path = folder_.write("a.txt", "some text");
  EXPECT_FALSE(or_throw(open({path}))[0].from_cache);
  const auto again = or_throw(open({path}));
  EXPECT_TRUE(again[0].from_cache);
  EXPECT_EQ(all(*again[0].dataset), ids("some text"));
  EXPECT_EQ(again[0].counts.text.documents, 1);
  folder_.write("a.txt", "other text");  // the content decides, not the name
  EXPECT_FALSE(or_throw(open({path}))[0].from_cache);
  options_.eod = eod_ + 1;
  EXPECT_FALSE(or_throw(open({path}))[0].from_cache);
}

TEST_F(Ingest, ADamagedCacheIsMadeAgain) {
  const auto path = folder_.write("a.txt", "some text");
  or_throw(open({path}));
  for (const auto& entry : std::filesystem::directory_iterator(options_.cache_dir)) {
    if (entry.path().extension() == ".bin") std::filesystem::resize_file(entry.path(), 1);
  }
  const auto again = or_throw(open({path}));
  EXPECT_FALSE(again[0].from_cache);
  EXPECT_EQ(all(*again[0].dataset), ids("some text"));
}

TEST_F(Ingest, ThreadsDoNotChangeTheResult) {
  std::string lines;
  for (int i = 0; i < 400; ++i) lines += "{\"text\": \"document " + std::to_string(i * i) + "\"}\n";
  std::vector<std::string> paths = {folder_.write("a.jsonl", lines)};
  for (int i = 0; i < 9; ++i)
    paths.push_back(folder_.write("t" + std::to_string(i) + ".txt", "text " + std::to_string(i)));
  const auto built = [&](int threads) {
    options_.num_threads = threads;
    or_throw(build_dataset(paths, options_, folder_.path("built")));
    return or_throw(read_file(folder_.path("built.bin"))) + or_throw(read_file(folder_.path("built.idx")));
  };
  const std::string one = built(1);
  EXPECT_EQ(built(4), one);
  options_.num_threads = 4;
  const auto sources = or_throw(open(paths));
  std::vector<int32_t> joined;
  for (const auto& source : sources) {
    const auto part = all(*source.dataset);
    joined.insert(joined.end(), part.begin(), part.end());
  }
  EXPECT_EQ(joined, all(*or_throw(IndexedDataset::open(folder_.path("built")))));
}

TEST_F(Ingest, TwoMayBuildOneCacheAtOnce) {
  const auto path = folder_.write("a.txt", "shared text " + std::string(20'000, 'x'));
  std::vector<std::vector<int32_t>> got(4);
  {
    std::vector<std::jthread> threads;
    for (auto& one : got) threads.emplace_back([&] { one = all(*or_throw(open({path}))[0].dataset); });
  }
  for (const auto& one : got) EXPECT_EQ(one, got[0]);
  EXPECT_EQ(TempFolder::num_files(options_.cache_dir), 3u);  // .bin, .idx, .json
}

TEST_F(Ingest, DatasetsAreOpenedAsTheyAreAndChecked) {
  or_throw(
      build_dataset({folder_.write("a.jsonl", "{\"text\": \"a\"}\n{\"text\": \"b\"}\n")}, options_, folder_.path("d")));
  const auto sources = or_throw(open({folder_.path("d")}));
  EXPECT_EQ(sources[0].kind, SourceKind::dataset);
  EXPECT_EQ(sources[0].counts.text.documents, 2);
  or_throw(build_dataset({folder_.path("d.bin"), folder_.write("c.txt", "c")}, options_, folder_.path("both")));
  const auto both = or_throw(IndexedDataset::open(folder_.path("both")));
  EXPECT_EQ(both->num_documents(), 3);
  EXPECT_EQ(or_throw(both->document(2)), ids("c"));
  auto writer = or_throw(IndexedDatasetWriter::create(folder_.path("big"), TokenDtype::i32));
  or_throw(writer->add_document(std::vector<int32_t>{static_cast<int32_t>(tokenizer_->vocab_size())}));
  or_throw(writer->finish());
  EXPECT_EQ(open({folder_.path("big")}).error().code, ErrorCode::dataset_token_range);
}

TEST_F(Ingest, ATokenizerLargerThanTheModelIsRefused) {
  const auto opened = open_sources({folder_.write("a.txt", "a")}, options_, tokenizer_->vocab_size() - 1);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, ErrorCode::tokenizer_vocab);
}

TEST_F(Ingest, ProgressCountsBytes) {
  std::vector<std::pair<uint64_t, uint64_t>> seen;
  options_.progress = [&](uint64_t done, uint64_t total) { seen.emplace_back(done, total); };
  options_.num_threads = 2;
  or_throw(open({folder_.write("a.txt", "aaaa"), folder_.write("b.jsonl", "{\"text\": \"b\"}\n")}));
  ASSERT_FALSE(seen.empty());
  EXPECT_EQ(seen.back(), std::pair(uint64_t{18}, uint64_t{18}));
  for (size_t i = 1; i < seen.size(); ++i) EXPECT_LE(seen[i - 1].first, seen[i].first);
}

// G2: a stop ends the work inside a text, between batches and in the check of a dataset, and leaves nothing half.
TEST_F(Ingest, AStopIsSeenWithinTheWork) {
  std::atomic<bool> stop{true};
  options_.stop = &stop;
  std::vector<int32_t> some;
  EXPECT_EQ(tokenizer_->encode_to("a b c", some, Specials::recognise, &stop).error().code, ErrorCode::interrupted);
  stop = false;
  EXPECT_TRUE(tokenizer_->encode_to("a b c", some, Specials::recognise, &stop).ok());

  std::string lines;
  for (int i = 0; i < 70'000; ++i) lines += "{\"text\": \"a\"}\n";
  const std::string jsonl = folder_.write("a.jsonl", lines);
  options_.progress = [&](uint64_t, uint64_t) { stop = true; };  // after the first of two batches
  EXPECT_EQ(open({jsonl}).error().code, ErrorCode::interrupted);
  EXPECT_EQ(TempFolder::num_files(options_.cache_dir), 0u);
  stop = false;
  EXPECT_EQ(build_dataset({jsonl}, options_, folder_.path("d")).error().code, ErrorCode::interrupted);
  EXPECT_FALSE(std::filesystem::exists(folder_.path("d.bin")));
  options_.progress = nullptr;
  stop = false;
  ASSERT_TRUE(build_dataset({jsonl}, options_, folder_.path("d")).ok());
  stop = true;
  EXPECT_EQ(open({folder_.path("d")}).error().code, ErrorCode::interrupted);
}

TEST_F(Ingest, ALongTextIsLeftInItsMiddle) {
  std::string text;
  for (uint32_t i = 0; text.size() < (size_t{4} << 20); ++i) text += std::to_string(i * 2654435761u) + "word ";
  std::atomic<bool> stop{false};
  std::vector<int32_t> some;
  std::jthread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    stop = true;
  });
  const Status status = tokenizer_->encode_to(text, some, Specials::recognise, &stop);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::interrupted);
}

TEST_F(Ingest, LeftoversOfTheDeadAreRemoved) {
  std::filesystem::create_directories(options_.cache_dir);
  for (const char* name : {"cache/0abc.bin.tmp-999999-0", "cache/0abc.json.tmp-1-7", "d.bin.tmp-1-0", "d.idx.tmp-1-0",
                           "other.bin.tmp-1-0"})
    folder_.write(name, "half");
  or_throw(open({folder_.write("a.txt", "one")}));
  EXPECT_EQ(TempFolder::num_files(options_.cache_dir), 3u);  // .bin, .idx, .json
  or_throw(build_dataset({folder_.path("a.txt")}, options_, folder_.path("d")));
  for (const char* name : {"d.bin.tmp-1-0", "d.idx.tmp-1-0"}) EXPECT_FALSE(std::filesystem::exists(folder_.path(name)));
  EXPECT_TRUE(std::filesystem::exists(folder_.path("other.bin.tmp-1-0")));
}

// A line may lie across the pieces in which the file is read.
TEST_F(Ingest, LongLines) {
  std::string lines, text(1'500'000, ' ');
  for (size_t i = 0; i < text.size(); i += 5) text[i] = static_cast<char>('a' + i / 5 % 26);
  for (int i = 0; i < 3; ++i) lines += "{\"text\": \"" + text + "\"}\n";
  options_.num_threads = 2;
  const auto counts = or_throw(build_dataset({folder_.write("a.jsonl", lines)}, options_, folder_.path("d")));
  EXPECT_EQ(counts.text.documents, 3);
  EXPECT_EQ(or_throw(or_throw(IndexedDataset::open(folder_.path("d")))->document(2)), ids(text));
}

}  // namespace
}  // namespace penteract::data
