#include "penteract/cli/stop_signal.h"

#include <csignal>

namespace penteract::cli {
namespace {

// A signal handler can reach nothing else.
std::atomic<bool> g_stop{false};

void on_signal(int signal) {
  g_stop.store(true);
  // What was saved stays whole.
  if (signal != SIGUSR1) std::signal(signal, SIG_DFL);
}

}  // namespace

const std::atomic<bool>& stop_on_signals() {
  for (int signal : {SIGTERM, SIGINT, SIGUSR1}) std::signal(signal, on_signal);
  return g_stop;
}

}  // namespace penteract::cli
