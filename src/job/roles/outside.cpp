#include "job/roles/outside.hpp"

#include <unistd.h>

#include <csignal>
#include <string>

namespace syncopate::cli {
namespace {

volatile std::sig_atomic_t asked_to_end = 0;

void ask_to_end(int /*signal*/) {
  asked_to_end = 1;
}

}  // namespace

void emit_line(int descriptor, const Recorder::Json& event) {
  const std::string line = event.dump() + "\n";
  // Nobody left to read events is nobody to tell: the supervisor's end is the job's end anyway.
  [[maybe_unused]] const ssize_t written = ::write(descriptor, line.data(), line.size());
}

void heed_wish_for_end() {
  std::signal(SIGTERM, ask_to_end);
}

bool end_is_wished() {
  return asked_to_end != 0;
}

}  // namespace syncopate::cli
