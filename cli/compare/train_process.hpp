#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "job/launch/descriptor.hpp"
#include "job/launch/supervisor_signals.hpp"

namespace syncopate::cli {

/// A `syncopate train` as a process of its own, this very program. It is killed with its owner, in
/// either sense, and takes its own processes along; a terminal's Ctrl-C does not reach it.
class TrainProcess {
 public:
  /// Errors: Error, where it cannot be started.
  TrainProcess(const std::filesystem::path& config, const std::filesystem::path& run_dir,
               SignalInbox& signals);
  ~TrainProcess();
  TrainProcess(const TrainProcess&) = delete;
  TrainProcess& operator=(const TrainProcess&) = delete;

  /// Readable when there is something to `read`; negative at the end of it.
  int output() const { return output_.get(); }
  int errors() const { return errors_.get(); }
  /// Takes what can be read now.
  void read();
  /// Whether it has ended by now; what it wrote is then read.
  bool has_ended();

  /// Of the last status: passes over the training set, and seconds of training clock.
  double epoch() const { return epoch_; }
  double training_seconds() const { return training_seconds_; }

  // Once it has ended:
  /// 128 and the signal's number, where a signal ended it.
  int exit_status() const { return exit_status_; }
  bool diverged() const { return diverged_; }
  /// The last line of standard error, without "syncopate: ".
  const std::string& last_words() const { return last_words_; }

 private:
  void read_event(std::string_view line);

  pid_t pid_ = -1;
  Descriptor output_;
  Descriptor errors_;
  LineSplitter events_;
  LineSplitter complaints_;
  double epoch_ = 0;
  double training_seconds_ = 0;
  bool diverged_ = false;
  int exit_status_ = 0;
  std::string last_words_;
};

}  // namespace syncopate::cli
