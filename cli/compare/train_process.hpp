#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "job/launch/descriptor.hpp"
#include "job/launch/supervisor_signals.hpp"

namespace syncopate::cli {

/// A process that runs `syncopate train` with this program. It is killed with this object and with
/// this process, and its own processes end with it; a terminal's Ctrl-C does not reach it.
class TrainProcess {
 public:
  /// Errors: Error if the process cannot be started.
  TrainProcess(const std::filesystem::path& config, const std::filesystem::path& run_dir,
               SignalInbox& signals);
  ~TrainProcess();
  TrainProcess(const TrainProcess&) = delete;
  TrainProcess& operator=(const TrainProcess&) = delete;

  /// Readable when `read` has data; negative after the end of the output.
  int output() const { return output_.get(); }
  int errors() const { return errors_.get(); }
  /// Reads the available output.
  void read();
  /// True once the process has ended; all of its output is read by then.
  bool has_ended();

  /// From the last status: passes over the training set, and seconds of training clock.
  double epoch() const { return epoch_; }
  double training_seconds() const { return training_seconds_; }

  // Valid once the process has ended:
  /// 128 + the signal's number if a signal ended the process.
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
