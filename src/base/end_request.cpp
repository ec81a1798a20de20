#include "base/end_request.hpp"

#include <fmt/format.h>
#include <sys/types.h>

#include <csignal>

namespace syncopate {
namespace {

volatile std::sig_atomic_t requested = 0;
/// The first request. If a supervisor has passed it on, it has the user's signal; else its sender
/// is known.
volatile std::sig_atomic_t passed_on = 0;
volatile std::sig_atomic_t signal_of_user = 0;
volatile std::sig_atomic_t sender = 0;

void on_request(int /*signal*/, siginfo_t* facts, void* /*context*/) {
  if (requested == 0) {
    passed_on = facts->si_code == SI_QUEUE ? 1 : 0;
    signal_of_user = facts->si_code == SI_QUEUE ? facts->si_value.sival_int : SIGTERM;
    sender = facts->si_pid;
  }
  requested = 1;
}

}  // namespace

void take_end_requests() {
  struct sigaction action {};
  action.sa_sigaction = on_request;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  ::sigaction(SIGTERM, &action, nullptr);
}

bool end_requested() {
  return requested != 0;
}

std::string end_requester() {
  if (requested == 0) {
    return "";
  }
  if (passed_on == 0) {
    return sender == 0 ? "SIGTERM" : fmt::format("SIGTERM from process {}", int{sender});
  }
  switch (signal_of_user) {
    case SIGINT: return "Ctrl-C";
    case SIGTERM: return "SIGTERM";
    case SIGHUP: return "SIGHUP";
    default: return "the end of the process that reads its output";
  }
}

void request_end_of(int process, int signal) {
  sigval value{};
  value.sival_int = signal;
  ::sigqueue(process, SIGTERM, value);
}

}  // namespace syncopate
