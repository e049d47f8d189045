#include "penteract/train/tensorboard.h"

#include <cmath>

#include "penteract/base/file.h"
#include "penteract/base/json.h"

namespace penteract::train {

Result<TensorBoardLog> TensorBoardLog::open(const std::string& folder, int64_t last_step) {
  PENT_TRY(make_directories(folder));
  PENT_ASSIGN(EventFile file, EventFile::open(folder + "/" + kFileName, last_step));
  return TensorBoardLog(std::move(file));
}

Status TensorBoardLog::append(const StepLine& line) {
  PENT_ASSIGN(const Json numbers, parse_json(line.json(), "metrics.jsonl"));
  std::vector<Scalar> scalars;
  for (const auto& [key, number] : numbers.items()) {
    if (key == "step" || !number.is_number()) continue;
    const auto value = static_cast<float>(number.get<double>());
    if (std::isfinite(value)) scalars.push_back({key, value});
  }
  return file_.append(line.step, scalars);
}

}  // namespace penteract::train
