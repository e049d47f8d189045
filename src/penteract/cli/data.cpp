// penteract data build | inspect | tokenize
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <thread>

#include "penteract/base/json.h"
#include "penteract/base/text.h"
#include "penteract/cli/commands.h"
#include "penteract/cli/options.h"
#include "penteract/cli/stop_signal.h"
#include "penteract/data/indexed_dataset.h"
#include "penteract/data/ingest.h"
#include "penteract/data/progress.h"
#include "penteract/data/tokenizer.h"

namespace penteract::cli {
namespace {

struct TokenizerArgs {
  std::string path, kind;
};

void add_tokenizer(CLI::App& app, TokenizerArgs& args, bool required) {
  auto* option = app.add_option("--tokenizer", args.path, "tokenizer.json or .tiktoken")->type_name("T");
  if (required) option->required();
  app.add_option("--kind", args.kind, "kind of a .tiktoken file, for example qwen3");
}

struct BuildArgs {
  TokenizerArgs tokenizer;
  std::vector<std::string> inputs;
  std::string out, eod, key = "text";
  bool skip_malformed = false;
  int workers = 0;
  CommonOptions common;
};

Result<data::IngestCounts> build(const BuildArgs& a) {
  PENT_ASSIGN(const auto tokenizer, data::Tokenizer::load(a.tokenizer.path, a.tokenizer.kind));
  data::IngestOptions options;
  options.tokenizer = tokenizer.get();
  PENT_ASSIGN(options.eod, data::eod_id(*tokenizer, a.tokenizer.path, a.eod));
  options.documents.text_key = a.key;
  options.documents.skip_malformed = a.skip_malformed;
  options.num_threads = a.workers > 0 ? a.workers : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  options.progress = data::progress_lines();
  options.stop = &stop_on_signals();
  return data::build_dataset(a.inputs, options, a.out);
}

void add_build(CLI::App& data_app, Run& run) {
  auto a = std::make_shared<BuildArgs>();
  CLI::App* command = data_app.add_subcommand("build", "text or JSONL to a tokenised dataset (OUT.bin, OUT.idx)");
  command->add_option("INPUT", a->inputs, "text, JSONL or datasets, in this order")->required();
  command->add_option("--out", a->out, "path without ending")->required();
  add_tokenizer(*command, a->tokenizer, true);
  command->add_option("--eod", a->eod, "end-of-document token");
  command->add_option("--key", a->key, "JSON key of the text");
  command->add_flag("--skip-malformed", a->skip_malformed, "count bad JSON lines instead of stopping");
  command->add_option("--workers", a->workers, "threads")->check(CLI::PositiveNumber);
  add_common(*command, a->common);
  command->callback([a, &run] {
    run = [a] {
      const auto counts = build(*a);
      if (!counts.ok()) return fail(counts.error(), a->common);
      const Json json = {{"path", a->out},
                         {"documents", counts->text.documents},
                         {"empty_documents", counts->text.empty_documents},
                         {"malformed_lines", counts->text.malformed_lines},
                         {"tokens", counts->num_tokens}};
      if (a->common.json) fmt::print("{}\n", dump_json(json));
      else
        fmt::print("{}.bin, {}.idx: {} documents, {} tokens; {} blank documents and {} malformed lines left out\n",
                   a->out, a->out, counts->text.documents, counts->num_tokens, counts->text.empty_documents,
                   counts->text.malformed_lines);
      return static_cast<int>(ExitCode::done);
    };
  });
}

struct SampleArgs {
  std::string path;
  int64_t sample = 0;
  TokenizerArgs tokenizer;
  CommonOptions common;
};

int inspect_sample(const SampleArgs& a) {
  const auto dataset = data::IndexedDataset::open(a.path);
  if (!dataset.ok()) return fail(dataset.error(), a.common);
  if (a.sample >= (*dataset)->num_documents()) {
    return fail({ErrorCode::invalid_argument,
                 fmt::format("document {} does not exist, the dataset has {}", a.sample, (*dataset)->num_documents()),
                 "--sample", "documents are counted from 0"},
                a.common);
  }
  const auto ids = (*dataset)->document(a.sample);
  if (!ids.ok()) return fail(ids.error(), a.common);
  Json json = {{"documents", (*dataset)->num_documents()},
               {"tokens", (*dataset)->num_tokens()},
               {"sample", a.sample},
               {"ids", *ids}};
  std::string text;
  if (!a.tokenizer.path.empty()) {
    const auto tokenizer = data::Tokenizer::load(a.tokenizer.path, a.tokenizer.kind);
    if (!tokenizer.ok()) return fail(tokenizer.error(), a.common);
    const auto decoded = (*tokenizer)->decode(*ids);
    if (!decoded.ok()) return fail(decoded.error(), a.common);
    json["text"] = text = *decoded;
  }
  // Every token of a pretraining document is a target: the loss mask is all ones.
  json["loss_mask"] = "all";
  if (a.common.json) fmt::print("{}\n", dump_json(json));
  else
    print_text(fmt::format("document {} of {}: {} tokens, all of them targets\n{}\n{}\n", a.sample,
                           (*dataset)->num_documents(), ids->size(), fmt::join(*ids, " "), text));
  return static_cast<int>(ExitCode::done);
}

void add_data_inspect(CLI::App& data_app, Run& run) {
  auto a = std::make_shared<SampleArgs>();
  CLI::App* command = data_app.add_subcommand("inspect", "documents and tokens of a dataset");
  command->add_option("PATH", a->path, "dataset: path without ending, .bin or .idx")->required();
  command->add_option("--sample", a->sample, "document to show")->check(CLI::NonNegativeNumber);
  add_tokenizer(*command, a->tokenizer, false);
  add_common(*command, a->common);
  command->callback([a, &run] { run = [a] { return inspect_sample(*a); }; });
}

struct TokenizeArgs {
  TokenizerArgs tokenizer;
  bool decode = false;
  CommonOptions common;
};

// One line of stdin to one line of stdout. Errors: text_malformed with the line.
Result<std::string> convert_line(const data::Tokenizer& tokenizer, const std::string& line, int64_t number,
                                 bool decode) {
  const std::string culprit = fmt::format("stdin:{}", number);
  PENT_ASSIGN(const Json json, parse_json(line, culprit));
  if (decode) {
    constexpr const char* kRemedy = "write one array of ids a line, for example [1, 2, 3]";
    if (!json.is_array()) return Error{ErrorCode::text_malformed, "is not a JSON array of ids", culprit, kRemedy};
    std::vector<int32_t> ids;
    for (const auto& id : json) {
      if (!id.is_number_integer() || id.get<int64_t>() < 0 || id.get<int64_t>() > INT32_MAX) {
        return Error{ErrorCode::text_malformed, fmt::format("holds {}, which is no token id", quote_line(id.dump())),
                     culprit, kRemedy};
      }
      ids.push_back(static_cast<int32_t>(id.get<int64_t>()));
    }
    PENT_ASSIGN(const std::string text, tokenizer.decode(ids));
    return Json{{"text", text}}.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  if (!json.is_object() || !json.contains("text") || !json["text"].is_string()) {
    return Error{ErrorCode::text_malformed, "is not a JSON object with a text under \"text\"", culprit,
                 "write one object a line, for example {\"text\": \"The quick fox\"}"};
  }
  PENT_ASSIGN(const auto ids, tokenizer.encode(json["text"].get<std::string>()));
  return fmt::format("[{}]", fmt::join(ids, ","));
}

int tokenize(const TokenizeArgs& a) {
  const auto tokenizer = data::Tokenizer::load(a.tokenizer.path, a.tokenizer.kind);
  if (!tokenizer.ok()) return fail(tokenizer.error(), a.common);
  std::string line;
  for (int64_t number = 1; std::getline(std::cin, line); ++number) {
    if (trim(line).empty()) continue;
    const auto converted = convert_line(**tokenizer, line, number, a.decode);
    if (!converted.ok()) return fail(converted.error(), a.common);
    fmt::print("{}\n", *converted);
  }
  return static_cast<int>(ExitCode::done);
}

void add_tokenize(CLI::App& data_app, Run& run) {
  auto a = std::make_shared<TokenizeArgs>();
  CLI::App* command =
      data_app.add_subcommand("tokenize", "JSONL with \"text\" on stdin, an array of ids a line on stdout");
  add_tokenizer(*command, a->tokenizer, true);
  command->add_flag("--decode", a->decode, "arrays of ids on stdin, JSONL with \"text\" on stdout");
  add_common(*command, a->common);
  command->callback([a, &run] { run = [a] { return tokenize(*a); }; });
}

}  // namespace

void add_data(CLI::App& app, Run& run) {
  CLI::App* command = app.add_subcommand("data", "builds, shows and tokenises datasets");
  command->require_subcommand(1);
  add_build(*command, run);
  add_data_inspect(*command, run);
  add_tokenize(*command, run);
}

}  // namespace penteract::cli
