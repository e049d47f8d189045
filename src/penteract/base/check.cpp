#include "penteract/base/check.h"

namespace penteract {
namespace {
thread_local int t_rank = -1;
}  // namespace

int current_rank() { return t_rank; }
void set_current_rank(int rank) { t_rank = rank; }

void check_failed(const char* file, int line, const char* expression, const std::string& detail) {
  std::string where = t_rank >= 0 ? fmt::format(" on rank {}", t_rank) : std::string();
  throw CheckFailure(fmt::format("check failed{}: {} ({}) at {}:{}", where, expression, detail, file, line));
}

}  // namespace penteract
