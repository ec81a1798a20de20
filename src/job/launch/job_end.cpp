#include "job/launch/job_end.hpp"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstring>

#include "job/launch/exit_status.hpp"

namespace syncopate {

JobEnd::Action JobEnd::interrupted() {
  if (interrupted_ || hurried_) {
    return kill();
  }
  if (succeeded_) {
    hurried_ = true;
    return killed_ ? Action::none : Action::start_grace;
  }
  interrupted_ = true;
  if (programs_ && !trains_ && !grace_started_) {
    grace_started_ = gave_up_ = true;
    return Action::end_programs;
  }
  return Action::ask;
}

JobEnd::Action JobEnd::output_closed() {
  if (output_closed_ || interrupted_ || killed_ || !running_[0]) {
    return Action::none;
  }
  output_closed_ = true;
  return Action::ask;
}

JobEnd::Action JobEnd::no_answer() {
  if (killed_ || grace_started_ || !is_running(0)) {
    return Action::none;
  }
  grace_started_ = gave_up_ = true;
  return Action::give_up;
}

JobEnd::Action JobEnd::ended(std::size_t process, int wait_status) {
  running_[process] = false;
  const bool refused = WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == exit_status::refused;
  if (may_be_lost_[process] && wait_status != 0 && (!refused || restarted_[process] > 0)) {
    return lost(process, refused);
  }
  const bool counts = wait_status != 0 && !(succeeded_ && killed_);
  if (counts) {
    failures_.push_back({process, wait_status});
  }
  refused_ = refused_ || refused;
  const bool alarming = wait_status != 0 || (process == 0 && (!programs_ || is_ending()));
  if (!alarming || grace_started_ || killed_) {
    return Action::none;
  }
  grace_started_ = true;
  return Action::start_grace;
}

/// The coordinator has reported a refusal.
JobEnd::Action JobEnd::lost(std::size_t process, bool refused) {
  if (grace_started_ || killed_ || refused) {
    return Action::none;
  }
  if (is_ending() || restarted_[process] == restarts_[process]) {
    return Action::report_loss;
  }
  ++restarted_[process];
  return Action::restart;
}

bool JobEnd::start_again(std::size_t process) {
  running_[process] = !is_ending();
  return running_[process];
}

JobEnd::Action JobEnd::grace_passed() {
  return kill();
}

JobEnd::Action JobEnd::reported_end(bool success) {
  succeeded_ = success;
  if (grace_started_ || killed_) {
    return Action::none;
  }
  grace_started_ = true;
  return Action::start_grace;
}

bool JobEnd::all_ended() const {
  return std::find(running_.begin(), running_.end(), true) == running_.end();
}

int JobEnd::exit_status() const {
  if (interrupted_) {
    return exit_status::interrupted;
  }
  if (refused_) {
    return exit_status::refused;
  }
  if (output_closed_) {
    return exit_status::output_closed;
  }
  return failures_.empty() ? exit_status::success : exit_status::failure;
}

void JobEnd::trains(bool goes_on) {
  trains_ = goes_on;
  if (goes_on) {
    left_.clear();  // those of a job before
  }
}

void JobEnd::left(std::size_t process) {
  if (std::find(left_.begin(), left_.end(), process) != left_.end()) {
    left_.clear();  // those of a job before
  }
  left_.push_back(process);
}

std::optional<JobEnd::Failure> JobEnd::first_failure() const {
  if (failures_.empty()) {
    return std::nullopt;
  }
  for (const std::size_t process : left_) {
    const auto failure = std::find_if(failures_.begin(), failures_.end(),
                                      [&](const Failure& each) { return each.process == process; });
    if (failure != failures_.end()) {
      return *failure;
    }
  }
  return failures_.front();
}

JobEnd::Action JobEnd::kill() {
  if (killed_) {
    return Action::none;
  }
  killed_ = true;
  return Action::kill;
}

std::string describe_end(int wait_status) {
  if (WIFSIGNALED(wait_status)) {
    const int signal = WTERMSIG(wait_status);
    return fmt::format("was killed by signal {} ({})", signal, ::strsignal(signal));
  }
  return fmt::format("ended with exit status {}", WEXITSTATUS(wait_status));
}

}  // namespace syncopate
