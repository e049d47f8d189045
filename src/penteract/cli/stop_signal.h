// Signals that ask a command to stop. Thread-safety: any thread may read the flag.
#pragma once

#include <atomic>

namespace penteract::cli {

// From this call on SIGTERM, SIGINT and SIGUSR1 set the flag and do nothing else; a second SIGTERM or SIGINT ends the
// process at once. Called by main's thread, before others start.
const std::atomic<bool>& stop_on_signals();

}  // namespace penteract::cli
