// The options of the sanitizers, in every program of a build with PENT_SANITIZE, so that they hold however it is
// started. ASAN_OPTIONS, TSAN_OPTIONS, … of the environment add to them. The runtimes call these functions by name.
#ifdef __SANITIZE_ADDRESS__

extern "C" const char* __asan_default_options() {
  return "detect_stack_use_after_return=1:strict_string_checks=1:check_initialization_order=1:detect_leaks=1";
}
extern "C" const char* __lsan_default_options() { return "suppressions=" PENT_SANITIZERS_DIR "/leak.supp"; }
extern "C" const char* __ubsan_default_options() { return "print_stacktrace=1"; }

#endif
#ifdef __SANITIZE_THREAD__

// history_size: of a long-lived rank thread the other access of a race is still known.
extern "C" const char* __tsan_default_options() {
  return "suppressions=" PENT_SANITIZERS_DIR "/thread.supp:history_size=7:second_deadlock_stack=1";
}

#endif
