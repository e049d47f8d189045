#include "penteract/checkpoint/find.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "penteract/base/file.h"
#include "penteract/base/text.h"
#include "penteract/checkpoint/agree.h"
#include "penteract/checkpoint/retention.h"
#include "penteract/checkpoint/step_directory.h"
#include "penteract/checkpoint/verify.h"

namespace penteract::checkpoint {
namespace {

// A directory goes by the step it holds: under another number it would be resumed again and again.
Status check_name(const std::string& step_dir, int64_t step) {
  PENT_ASSIGN(const StateFile state, read_state(step_dir));
  if (state.state.step == step) return {};
  return Error{ErrorCode::checkpoint_damaged, fmt::format("holds step {}", state.state.step), step_dir,
               fmt::format("rename it to {}", step_name(state.state.step))};
}

// The first thing wrong with a step, or ok.
Status check_step(const std::string& step_dir, int64_t step, Depth depth) {
  PENT_TRY(check_name(step_dir, step));
  if (depth == Depth::sizes) {
    auto contents = read_step(step_dir);
    return contents.ok() ? Status() : Status(contents.take_error());
  }
  PENT_ASSIGN(VerifyReport report, verify(step_dir));
  if (report.ok()) return {};
  Error first = report.problems.front();
  if (report.problems.size() > 1) first.what += fmt::format(" (and {} more)", report.problems.size() - 1);
  // One part that is absent makes the step incomplete, whatever else is wrong.
  if (report.incomplete()) first.code = ErrorCode::checkpoint_incomplete;
  return first;
}

void note_unfinished(const std::string& checkpoints_dir, std::vector<std::string>& notes) {
  std::error_code error;
  for (std::filesystem::directory_iterator it(checkpoints_dir, error), end; !error && it != end; it.increment(error)) {
    std::string name = it->path().filename().string();
    const std::string_view suffix = kTemporarySuffix;
    if (!name.ends_with(suffix) || !parse_step_name(std::string_view(name).substr(0, name.size() - suffix.size())))
      continue;
    notes.push_back(fmt::format("{}: a save that did not finish, ignored", it->path().string()));
  }
}

void note_latest(const std::string& checkpoints_dir, const std::string& found, std::vector<std::string>& notes) {
  const std::string path = join_path(checkpoints_dir, kLatestFileName);
  const auto latest = read_file(path, 4096);
  if (!latest.ok()) {
    notes.push_back(fmt::format("{}: cannot be read; {} is the newest complete step", path, found));
  } else if (trim(*latest) != found) {
    notes.push_back(fmt::format("{}: says {}; {} is the newest complete step", path, quote_line(trim(*latest)), found));
  }
}

}  // namespace

Result<std::optional<std::string>> find_newest(const std::string& checkpoints_dir, std::vector<std::string>* notes,
                                               Depth depth) {
  std::vector<std::string> ignored;
  std::vector<std::string>& lines = notes != nullptr ? *notes : ignored;
  PENT_ASSIGN(const std::vector<int64_t> steps, list_steps(checkpoints_dir));
  note_unfinished(checkpoints_dir, lines);
  // A step that this run has committed was whole once: without its parts it is a loss, not a save that never finished.
  PENT_ASSIGN(const std::vector<std::string> committed, read_records(checkpoints_dir));
  std::optional<Error> damage;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    const std::string path = join_path(checkpoints_dir, step_name(*step));
    const Status status = check_step(path, *step, depth);
    if (status.ok()) {
      note_latest(checkpoints_dir, step_name(*step), lines);
      return std::optional<std::string>(path);
    }
    const Error& error = status.error();
    const bool incomplete = error.code == ErrorCode::checkpoint_incomplete;
    lines.push_back(fmt::format("{}: skipped, it is {}: {}: {}", path, incomplete ? "incomplete" : "damaged",
                                error.culprit, error.what));
    const bool lost = std::find(committed.begin(), committed.end(), step_name(*step)) != committed.end();
    if ((!incomplete || lost) && !damage) damage = error;
  }
  if (damage) {
    damage->code = ErrorCode::checkpoint_damaged;
    damage->what =
        fmt::format("no checkpoint in {} is whole; the newest damaged one: {}", checkpoints_dir, damage->what);
    damage->remedy = "restore a copy, or move the folder away to start afresh";
    return *damage;
  }
  return std::optional<std::string>();
}

Result<std::optional<std::string>> find_newest(const comm::Group& group, const std::string& checkpoints_dir,
                                               std::vector<std::string>* notes, Depth depth) {
  std::string path;
  Status status;
  if (group.index() == 0) {
    auto found = find_newest(checkpoints_dir, notes, depth);
    if (found.ok()) {
      path = found->value_or("");
    } else {
      status = found.take_error();
    }
  }
  PENT_TRY(agree(group, status));
  path = broadcast_text(group, path);
  return path.empty() ? std::optional<std::string>() : std::optional<std::string>(path);
}

}  // namespace penteract::checkpoint
