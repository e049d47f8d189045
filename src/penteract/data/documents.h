// The documents of one file: a text file is one, a JSON line one. One thread's.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "penteract/base/file.h"
#include "penteract/base/result.h"

namespace penteract::data {

enum class SourceKind { text, jsonl, dataset };

// By name: .jsonl and .json are JSON lines; .bin, .idx and a path beside which PATH.bin and PATH.idx stand are
// datasets; everything else that is a file is text. Errors: dataset_missing; recipe_unsupported (.parquet).
Result<SourceKind> source_kind(const std::string& path);

// The rule for documents that hold nothing: a text, or a JSON line, or its text, that is empty or only whitespace
// (space, tab, line feed, carriage return, vertical tab, form feed) is skipped and counted. Others are taken as they
// are, untrimmed. A UTF-8 byte order mark at the start of a file is no part of its first document.
bool is_blank(std::string_view text);

class DocumentReader {
 public:
  struct Counts {
    int64_t documents = 0, empty_documents = 0, malformed_lines = 0;
  };
  struct Options {
    std::string text_key = "text";
    bool skip_malformed = false;  // count and go on instead of stopping at a bad JSON line
  };
  // REQUIRES: kind text or jsonl. Errors: dataset_missing, file_unreadable.
  static Result<DocumentReader> open(const std::string& path, SourceKind kind, const Options& options);

  // The next document that is not blank; false at the end. Errors: text_malformed with file and line (no JSON object,
  // no text under the key, lone surrogates, invalid UTF-8, a line above 1 GiB); storage_read.
  Result<bool> next(std::string& document);

  const Counts& counts() const { return counts_; }
  uint64_t bytes_read() const { return read_at_; }
  uint64_t size_bytes() const { return file_.size_bytes(); }

 private:
  DocumentReader(FileReader file, SourceKind kind, const Options& options)
      : file_(std::move(file)), kind_(kind), options_(options) {}
  Result<bool> next_line(std::string& line);
  Status text_of_line(const std::string& line, std::string& document) const;
  Error malformed(const std::string& what) const;

  FileReader file_;
  SourceKind kind_;
  Options options_;
  Counts counts_;
  std::string buffer_;  // bytes read and not yet given out, from buffer_at_
  size_t buffer_at_ = 0;
  uint64_t read_at_ = 0;  // of the file
  int64_t line_ = 0;
};

}  // namespace penteract::data
