#include "penteract/train/metrics.h"

#include <cmath>
#include <filesystem>

#include "penteract/base/file.h"
#include "penteract/base/json.h"
#include "penteract/base/log.h"
#include "penteract/base/text.h"

namespace penteract::train {
namespace {
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }
}  // namespace

std::string StepLine::json() const {
  nlohmann::ordered_json line;
  line["step"] = step;
  line["loss"] = number(result.loss);
  line["grad_norm"] = number(result.grad_norm);
  line["lr"] = lr;
  line["tokens"] = tokens;
  line["tokens_per_s"] = number(tokens_per_s);
  line["tflops"] = number(tflops);
  line["step_ms"] = number(step_ms);
  line["skipped"] = skipped;
  line["nonfinite"] = result.nonfinite;
  line["memory_max_bytes"] = memory_max_bytes;
  line["aux_loss"] = number(result.aux_loss);
  line["target_tokens"] = result.target_tokens;
  line["max_expert_load"] = number(result.max_expert_load);
  if (eval_loss) line["eval_loss"] = number(*eval_loss);
  if (test_loss) line["test_loss"] = number(*test_loss);
  return line.dump();
}

Result<MetricsLog> MetricsLog::open(const std::string& path, int64_t last_step) {
  std::string kept;
  int64_t previous = 0, num_kept = 0;
  if (last_step > 0 && std::filesystem::exists(path)) {
    PENT_ASSIGN(const std::string text, read_file(path));
    for (const std::string& line : split_text(text, '\n')) {
      const auto parsed = parse_json(line, path);
      if (!parsed.ok() || !parsed->is_object() || !parsed->contains("step") || !(*parsed)["step"].is_number_integer())
        continue;
      const auto step = (*parsed)["step"].get<int64_t>();
      if (step <= previous || step > last_step) continue;
      kept += line + "\n";
      previous = step;
      ++num_kept;
    }
  }
  if (num_kept < last_step) {
    log_warning("{}: holds {} of the {} steps before, the others are lost; new lines follow from step {}", path,
                num_kept, last_step, last_step + 1);
  }
  PENT_TRY(write_file_atomic(path, kept));
  return MetricsLog(path);
}

Status MetricsLog::append(const StepLine& line) { return append_file(path_, line.json() + "\n"); }

}  // namespace penteract::train
