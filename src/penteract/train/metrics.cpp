#include "penteract/train/metrics.h"

#include <fcntl.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>

#include "penteract/base/file.h"
#include "penteract/base/json.h"
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
  if (last_step > 0 && std::filesystem::exists(path)) {
    PENT_ASSIGN(const std::string text, read_file(path));
    for (const std::string& line : split_text(text, '\n')) {
      const auto parsed = parse_json(line, path);
      if (!parsed.ok() || !parsed->is_object() || !parsed->contains("step") || !(*parsed)["step"].is_number_integer())
        continue;
      if ((*parsed)["step"].get<int64_t>() <= last_step) kept += line + "\n";
    }
  }
  PENT_TRY(write_file_atomic(path, kept));
  return MetricsLog(path);
}

Status MetricsLog::append(const StepLine& line) {
  const std::string text = line.json() + "\n";
  const int fd = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return errno_error(ErrorCode::storage_write, path_, "open");
  // One write, so that a kill leaves the line whole or absent in all but a full disk.
  const ssize_t written = ::write(fd, text.data(), text.size());
  const bool ok = written == static_cast<ssize_t>(text.size()) && ::fsync(fd) == 0;
  Status status = ok ? Status() : Status(errno_error(ErrorCode::storage_write, path_, "write"));
  ::close(fd);
  return status;
}

}  // namespace penteract::train
