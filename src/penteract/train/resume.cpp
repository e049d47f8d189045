#include "penteract/train/resume.h"

#include <fmt/format.h>

#include <utility>

#include "penteract/base/json.h"
#include "penteract/base/log.h"
#include "penteract/checkpoint/find.h"
#include "penteract/families/registry.h"
#include "penteract/spec/recipe.h"
#include "penteract/topology/layout.h"

namespace penteract::train {
namespace {

bool has_tokenizer(const Json& extra) {
  return extra.is_object() && extra.contains("tokenizer") && extra["tokenizer"].is_string() && extra.contains("eod") &&
         extra["eod"].is_number_integer();
}

Status decode_run_state(const checkpoint::SharedState& state, ResumePoint& point) {
  Counters& c = point.counters;
  c.step = state.step;
  c.tokens = state.tokens;
  c.samples = state.samples;
  auto malformed = [&](const std::string& what) {
    return Error{ErrorCode::checkpoint_malformed, what, point.step_dir, "resume from another checkpoint"};
  };
  PENT_ASSIGN(const Json extra, parse_json(state.extra_json, point.step_dir));
  if (!extra.is_object()) return malformed("its run state is no JSON object");
  for (auto [name, value] :
       {std::pair{"updates", &c.updates}, {"skipped", &c.skipped}, {"skipped_in_a_row", &c.skipped_in_a_row}}) {
    if (!extra.contains(name) || !extra[name].is_number_integer()) {
      return malformed(fmt::format("its run state lacks the counter \"{}\"", name));
    }
    *value = extra[name].get<int64_t>();
  }
  if (!extra.contains("data_plan") || !extra["data_plan"].is_string()) {
    return malformed("its run state lacks the data plan");
  }
  PENT_ASSIGN(point.plan, data::DataPlan::from_json(extra["data_plan"].get<std::string>(), point.step_dir));
  return {};
}

}  // namespace

std::string encode_run_state(const Counters& c, const data::DataPlan& plan, const TokenizerIdentity& tokenizer) {
  return Json{{"updates", c.updates},
              {"skipped", c.skipped},
              {"skipped_in_a_row", c.skipped_in_a_row},
              {"data_plan", plan.to_json()},
              {"tokenizer", tokenizer.fingerprint},
              {"eod", tokenizer.eod}}
      .dump();
}

Status check_tokenizer(const checkpoint::SharedState& state, const TokenizerIdentity& now, const std::string& path) {
  PENT_ASSIGN(const Json extra, parse_json(state.extra_json, "run state of the checkpoint"));
  if (!has_tokenizer(extra)) {
    return Error{ErrorCode::checkpoint_malformed, "its run state lacks the tokenizer", "run state of the checkpoint",
                 "use a checkpoint that a run wrote"};
  }
  const auto fingerprint = extra["tokenizer"].get<std::string>();
  const auto eod = extra["eod"].get<int64_t>();
  constexpr const char* kRemedy = "name the one that the run began with, or start another run.dir";
  if (fingerprint != now.fingerprint) {
    return Error{
        ErrorCode::recipe_changed,
        fmt::format("{} is not the tokenizer of the checkpoint's run: its content has the fingerprint {}, not {}", path,
                    now.fingerprint, fingerprint),
        "data.tokenizer", kRemedy};
  }
  if (eod != now.eod) {
    return Error{ErrorCode::recipe_changed,
                 fmt::format("documents end with token {}, in the checkpoint's run with {}: a resume may not change it",
                             now.eod, eod),
                 "data.eod", kRemedy};
  }
  return {};
}

Result<std::optional<ResumePoint>> find_resume_point(const std::string& checkpoints_dir, const spec::RunSpec& run,
                                                     const std::string& recipe_toml,
                                                     const TokenizerIdentity& tokenizer) {
  std::vector<std::string> notes;
  auto found = checkpoint::find_newest(checkpoints_dir, &notes);
  for (const auto& note : notes) log_warning("{}", note);
  if (!found.ok()) return found.take_error();
  if (!found->has_value()) {
    log_info("starting fresh: {} holds no checkpoint", checkpoints_dir);
    return std::optional<ResumePoint>();
  }
  ResumePoint point;
  point.step_dir = **found;
  PENT_ASSIGN(point.reader, checkpoint::Reader::open(point.step_dir));
  const auto& state = point.reader->state();
  PENT_ASSIGN(const auto changes, spec::compare_recipes(state.recipe_toml, recipe_toml, families::read_model));
  PENT_TRY(check_tokenizer(state, tokenizer, run.data.tokenizer_path));
  const std::string layout = topology::to_string(run.layout);
  if (state.layout != layout) {
    return Error{ErrorCode::recipe_unsupported,
                 fmt::format("was written by the layout {}, but the run has {}: resuming on another layout is not "
                             "supported in this version",
                             state.layout, layout),
                 point.step_dir, "resume with the layout that wrote it"};
  }
  PENT_TRY(decode_run_state(state, point));
  log_info("resuming from {} (step {})", point.step_dir, state.step);
  for (const auto& change : changes) log_info("changed: {} was {}, now {}", change.key, change.before, change.now);
  return std::optional<ResumePoint>(std::move(point));
}

}  // namespace penteract::train
