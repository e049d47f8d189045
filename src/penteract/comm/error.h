// The exception of communication: group, operation, sequence and elapsed time are in its text. Caught at thread roots.
// comm_deadline: a deadline passed. comm_failed: members differ, a buffer was written in flight, or another rank failed
// (then the text names that rank, and only the first cause is reported). Thread-safety: a value.
#pragma once

#include "penteract/base/result.h"

namespace penteract::comm {

class CommError : public ErrorException {
 public:
  using ErrorException::ErrorException;
};

}  // namespace penteract::comm
