#include "job/launch/supervisor_signals.hpp"

#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace syncopate {
namespace {

constexpr std::array end_requests{SIGINT, SIGTERM, SIGHUP};

bool is_ignored(int signal) {
  struct sigaction action {};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

sigset_t signals_to_take(bool programs) {
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGCHLD);
  const auto add = [&](int signal) {
    if (!is_ignored(signal)) {
      ::sigaddset(&signals, signal);
    }
  };
  std::ranges::for_each(end_requests, add);
  add(SIGWINCH);
  add(SIGTSTP);
  if (programs) {
    add(SIGUSR1);
    add(SIGUSR2);
  }
  return signals;
}

timespec to_timespec(Duration duration) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(duration);
  return {.tv_sec = seconds.count(), .tv_nsec = (duration - seconds).count()};
}

}  // namespace

SignalInbox::SignalInbox(bool programs) {
  const sigset_t signals = signals_to_take(programs);
  // This process may have inherited an ignored SIGCHLD, which would hide the status of children.
  ::signal(SIGCHLD, SIG_DFL);
  ::sigprocmask(SIG_BLOCK, &signals, &before_);
  descriptor_ = Descriptor(::signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC));
  if (descriptor_.get() < 0) {
    throw_system_error("receive signals");
  }
}

SignalInbox::~SignalInbox() {
  ::sigprocmask(SIG_SETMASK, &before_, nullptr);
}

std::vector<int> SignalInbox::take() {
  std::vector<int> signals;
  signalfd_siginfo info{};
  while (::read(descriptor_.get(), &info, sizeof info) == sizeof info) {
    signals.push_back(static_cast<int>(info.ssi_signo));
  }
  return signals;
}

void SignalInbox::leave_in_child() {
  descriptor_.close();
  ::sigprocmask(SIG_SETMASK, &before_, nullptr);
}

void pass_over_next_requests() {
  for (const int signal : end_requests) {
    struct sigaction action {};
    if (::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_DFL) {
      action.sa_handler = [](int) {};
      action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
      ::sigaction(signal, &action, nullptr);
    }
  }
}

Timer::Timer() : descriptor_(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)) {
  if (descriptor_.get() < 0) {
    throw_system_error("make a timer");
  }
}

void Timer::acknowledge() {
  std::uint64_t times = 0;
  while (::read(descriptor_.get(), &times, sizeof times) == sizeof times) {
  }
}

void Timer::set(Duration first, Duration period) {
  const itimerspec times{.it_interval = to_timespec(period), .it_value = to_timespec(first)};
  if (::timerfd_settime(descriptor_.get(), 0, &times, nullptr) != 0) {
    throw_system_error("set a timer");
  }
}

}  // namespace syncopate
