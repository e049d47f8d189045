#include "penteract/data/ingest.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <optional>

#include "penteract/base/check.h"
#include "penteract/base/hash.h"
#include "penteract/base/json.h"
#include "penteract/data/parallel_for.h"
#include "penteract/data/stop.h"

namespace penteract::data {
namespace {

constexpr size_t kBatchBytes = 8 << 20;  // of text a thread, tokenised before it is written
constexpr size_t kBatchDocuments = 1 << 16;
constexpr size_t kHashBytes = 1 << 22;
constexpr int64_t kCopyTokens = 1 << 24;
constexpr std::string_view kCacheFormat = "penteract tokens 1";

// Sums what the files report; one call to the user's function at a time.
class Progress {
 public:
  Progress(const IngestOptions& options, uint64_t total) : report_(options.progress), total_(total) {}
  void add(uint64_t bytes) {
    if (!report_ || bytes == 0) return;
    const std::lock_guard lock(mutex_);
    done_ = std::min(done_ + bytes, total_);
    report_(done_, total_);
  }

 private:
  const std::function<void(uint64_t, uint64_t)>& report_;
  std::mutex mutex_;
  uint64_t total_, done_ = 0;
};

Error empty_source(const std::string& path) {
  return {ErrorCode::dataset_empty, "holds no document: it is empty, or only whitespace", path,
          "name a file with text in it"};
}

// Tokenises documents in batches on several threads and adds them to the writer in their order.
class Tokenising {
 public:
  Tokenising(const IngestOptions& options, int num_threads, IndexedDatasetWriter& writer, Progress& progress)
      : options_(options), num_threads_(num_threads), writer_(writer), progress_(progress) {}

  // Takes the documents of a file; the last of them may wait for flush().
  Result<DocumentReader::Counts> add_file(const std::string& path, SourceKind kind) {
    PENT_ASSIGN(DocumentReader reader, DocumentReader::open(path, kind, options_.documents));
    uint64_t seen = 0;
    while (true) {
      PENT_TRY(check_stop(options_.stop));
      std::string text;
      PENT_ASSIGN(const bool more, reader.next(text));
      source_bytes_ += reader.bytes_read() - seen;
      seen = reader.bytes_read();
      if (!more) return reader.counts();
      text_bytes_ += text.size();
      texts_.push_back(std::move(text));
      if (text_bytes_ >= kBatchBytes * static_cast<size_t>(num_threads_) || texts_.size() >= kBatchDocuments) {
        PENT_TRY(flush());
      }
    }
  }

  Status flush() {
    std::vector<std::vector<int32_t>> ids(texts_.size());
    Status tokenised = parallel_for(static_cast<int64_t>(texts_.size()), num_threads_, [&](int64_t i) -> Status {
      auto& document = ids[static_cast<size_t>(i)];
      PENT_TRY(
          options_.tokenizer->encode_to(texts_[static_cast<size_t>(i)], document, Specials::recognise, options_.stop));
      document.push_back(options_.eod);
      return {};
    });
    if (!tokenised.ok()) return tokenised;
    for (const auto& document : ids) {
      PENT_TRY(check_stop(options_.stop));
      PENT_TRY(writer_.add_document(document));
    }
    progress_.add(source_bytes_);
    texts_.clear();
    text_bytes_ = source_bytes_ = 0;
    return {};
  }

 private:
  const IngestOptions& options_;
  int num_threads_;
  IndexedDatasetWriter& writer_;
  Progress& progress_;
  std::vector<std::string> texts_;
  size_t text_bytes_ = 0;      // of texts_
  uint64_t source_bytes_ = 0;  // of the files, that are not reported yet
};

Result<std::string> content_hash(const std::string& path, const IngestOptions& options) {
  PENT_ASSIGN(const FileReader file, FileReader::open(path));
  Hasher128 hasher;
  std::string piece;
  for (uint64_t at = 0; at < file.size_bytes(); at += piece.size()) {
    PENT_TRY(check_stop(options.stop));
    piece.resize(static_cast<size_t>(std::min<uint64_t>(kHashBytes, file.size_bytes() - at)));
    PENT_TRY(file.read_at(at, piece.data(), piece.size()));
    hasher.update(piece.data(), piece.size());
  }
  return hasher.hex();
}

// The counts that stand beside a cached dataset, and the dataset; nothing where either is absent or damaged.
std::optional<OpenSource> find_cached(const std::string& prefix) {
  auto json = read_json(prefix + ".json", 1 << 16);
  auto dataset = IndexedDataset::open(prefix);
  if (!json.ok() || !dataset.ok() || !json->is_object()) return std::nullopt;
  OpenSource source;
  for (const auto& [key, number] :
       {std::pair("documents", &source.counts.text.documents), std::pair("tokens", &source.counts.num_tokens),
        std::pair("empty_documents", &source.counts.text.empty_documents),
        std::pair("malformed_lines", &source.counts.text.malformed_lines)}) {
    const auto value = json->find(key);
    if (value == json->end() || !value->is_number_integer()) return std::nullopt;
    *number = value->get<int64_t>();
  }
  if ((*dataset)->num_tokens() != source.counts.num_tokens) return std::nullopt;
  source.dataset = *dataset;
  source.from_cache = true;
  return source;
}

Result<OpenSource> open_text(const std::string& path, SourceKind kind, const IngestOptions& options, int num_threads,
                             Progress& progress) {
  PENT_ASSIGN(const std::string content, content_hash(path, options));
  const std::string key =
      fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n{}", kCacheFormat, content, options.tokenizer->fingerprint(), options.eod,
                  static_cast<int>(kind), options.documents.skip_malformed, options.documents.text_key);
  const std::string prefix = fmt::format("{}/{}", options.cache_dir, hash128_hex(key.data(), key.size()));
  if (auto cached = find_cached(prefix)) {
    PENT_ASSIGN(const FileReader file, FileReader::open(path));
    progress.add(file.size_bytes());
    return std::move(*cached);
  }
  PENT_ASSIGN(const auto writer,
              IndexedDatasetWriter::create(prefix, token_dtype_for(options.tokenizer->vocab_size())));
  Tokenising tokenising(options, num_threads, *writer, progress);
  IngestCounts counts;
  PENT_ASSIGN(counts.text, tokenising.add_file(path, kind));
  PENT_TRY(tokenising.flush());
  counts.num_tokens = writer->num_tokens();
  if (counts.num_tokens == 0) return empty_source(path);
  const Json json = {{"documents", counts.text.documents},
                     {"empty_documents", counts.text.empty_documents},
                     {"malformed_lines", counts.text.malformed_lines},
                     {"tokens", counts.num_tokens},
                     {"source", std::filesystem::path(path).filename().string()}};
  PENT_TRY(write_file_atomic(prefix + ".json", json.dump(2, ' ', true, Json::error_handler_t::replace) + "\n"));
  PENT_TRY(writer->finish(IndexedDatasetWriter::Existing::same));
  PENT_ASSIGN(auto dataset, IndexedDataset::open(prefix));
  return OpenSource{"", kind, std::move(dataset), counts, false};
}

Result<OpenSource> open_dataset(const std::string& path, const IngestOptions& options, int64_t vocab_size) {
  PENT_ASSIGN(auto dataset, IndexedDataset::open(path));
  if (dataset->num_tokens() == 0) return empty_source(path);
  PENT_TRY(dataset->check_vocab(vocab_size, options.stop));
  IngestCounts counts{{dataset->num_documents(), 0, 0}, dataset->num_tokens()};
  return OpenSource{"", SourceKind::dataset, std::move(dataset), counts, false};
}

Result<uint64_t> text_bytes(const std::vector<std::string>& paths, std::vector<SourceKind>& kinds) {
  uint64_t total = 0;
  for (const auto& path : paths) {
    PENT_ASSIGN(const SourceKind kind, source_kind(path));
    kinds.push_back(kind);
    if (kind == SourceKind::dataset) continue;
    PENT_ASSIGN(const FileReader file, FileReader::open(path));
    total += file.size_bytes();
  }
  return total;
}

// Documents of a dataset, in pieces that fit in memory.
Status copy_dataset(const std::string& path, const IngestOptions& options, IndexedDatasetWriter& writer,
                    IngestCounts& counts) {
  PENT_ASSIGN(const auto dataset, IndexedDataset::open(path));
  for (int64_t i = 0; i < dataset->num_documents(); ++i) {
    PENT_TRY(check_stop(options.stop));
    PENT_ASSIGN(const auto range, dataset->document_range(i));
    if (range.second - range.first > kCopyTokens) {
      return Error{ErrorCode::recipe_unsupported,
                   fmt::format("document {} has {} tokens, more than the {} that are copied", i,
                               range.second - range.first, kCopyTokens),
                   path, "name the dataset in the recipe beside the new one instead"};
    }
    PENT_ASSIGN(const auto ids, dataset->document(i));
    PENT_TRY(writer.add_document(ids));
  }
  counts.text.documents += dataset->num_documents();
  return {};
}

}  // namespace

Result<std::vector<OpenSource>> open_sources(const std::vector<std::string>& paths, const IngestOptions& options,
                                             int64_t vocab_size) {
  PENT_CHECK(options.tokenizer != nullptr && options.eod >= 0 && !options.cache_dir.empty());
  if (options.tokenizer->vocab_size() > vocab_size) {
    return Error{ErrorCode::tokenizer_vocab,
                 fmt::format("the tokenizer has ids up to {}, the model a vocabulary of {}",
                             options.tokenizer->vocab_size() - 1, vocab_size),
                 "model.vocab_size", "raise vocab_size, or use the tokenizer that belongs to the model"};
  }
  remove_leftovers(options.cache_dir);
  std::vector<SourceKind> kinds;
  PENT_ASSIGN(const uint64_t total, text_bytes(paths, kinds));
  Progress progress(options, total);
  std::vector<OpenSource> sources(paths.size());
  const auto open_one = [&](size_t i, int num_threads) -> Status {
    PENT_ASSIGN(sources[i], kinds[i] == SourceKind::dataset
                                ? open_dataset(paths[i], options, vocab_size)
                                : open_text(paths[i], kinds[i], options, num_threads, progress));
    sources[i].path = paths[i];
    sources[i].kind = kinds[i];
    return {};
  };
  // A text file is one document, one thread's work: several at once. JSON lines share the threads within a file.
  Status opened = parallel_for(static_cast<int64_t>(paths.size()), options.num_threads, [&](int64_t i) -> Status {
    return kinds[static_cast<size_t>(i)] == SourceKind::text ? open_one(static_cast<size_t>(i), 1) : Status();
  });
  if (!opened.ok()) return opened.take_error();
  for (size_t i = 0; i < paths.size(); ++i) {
    if (kinds[i] != SourceKind::text) PENT_TRY(open_one(i, options.num_threads));
  }
  return sources;
}

Result<IngestCounts> build_dataset(const std::vector<std::string>& paths, const IngestOptions& options,
                                   const std::string& prefix) {
  PENT_CHECK(options.tokenizer != nullptr && options.eod >= 0);
  std::vector<SourceKind> kinds;
  PENT_ASSIGN(const uint64_t total, text_bytes(paths, kinds));
  Progress progress(options, total);
  const std::filesystem::path place(prefix);
  for (const char* ending : {".bin.", ".idx."}) {
    remove_leftovers(place.has_parent_path() ? place.parent_path().string() : ".", place.filename().string() + ending);
  }
  PENT_ASSIGN(const auto writer,
              IndexedDatasetWriter::create(prefix, token_dtype_for(options.tokenizer->vocab_size())));
  Tokenising tokenising(options, options.num_threads, *writer, progress);
  IngestCounts sum;
  for (size_t i = 0; i < paths.size(); ++i) {
    if (kinds[i] == SourceKind::dataset) {
      PENT_TRY(tokenising.flush());  // keeps the order
      PENT_TRY(copy_dataset(paths[i], options, *writer, sum));
      continue;
    }
    PENT_ASSIGN(const auto counts, tokenising.add_file(paths[i], kinds[i]));
    sum.text.documents += counts.documents;
    sum.text.empty_documents += counts.empty_documents;
    sum.text.malformed_lines += counts.malformed_lines;
  }
  PENT_TRY(tokenising.flush());
  sum.num_tokens = writer->num_tokens();
  if (sum.num_tokens == 0) return empty_source(paths.empty() ? prefix : paths.front());
  PENT_TRY(writer->finish());
  return sum;
}

}  // namespace penteract::data
