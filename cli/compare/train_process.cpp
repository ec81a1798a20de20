#include "cli/compare/train_process.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "job/launch/exit_status.hpp"

namespace syncopate::cli {
namespace {

using Json = nlohmann::ordered_json;

/// Reads the available bytes; closes the descriptor at their end.
void read_lines(Descriptor& from, LineSplitter& lines) {
  std::array<char, 16 * 1024> bytes;
  while (from.get() >= 0) {
    const ssize_t count = ::read(from.get(), bytes.data(), bytes.size());
    if (count > 0) {
      lines.add({bytes.data(), static_cast<std::size_t>(count)});
    } else if (count < 0 && errno == EAGAIN) {
      return;
    } else if (count == 0 || errno != EINTR) {
      lines.finish();
      from.close();
    }
  }
}

[[noreturn]] void become(std::vector<std::string> words, int output, int errors) {
  const Descriptor nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  std::vector<char*> arguments;
  for (std::string& word : words) {
    arguments.push_back(word.data());
  }
  arguments.push_back(nullptr);
  if (::dup2(nothing.get(), STDIN_FILENO) >= 0 && ::dup2(output, STDOUT_FILENO) >= 0 &&
      ::dup2(errors, STDERR_FILENO) >= 0) {
    ::execv("/proc/self/exe", arguments.data());
  }
  ::_exit(exit_status::failure);
}

}  // namespace

TrainProcess::TrainProcess(const std::filesystem::path& config,
                           const std::filesystem::path& run_dir, SignalInbox& signals)
    : events_([this](std::string_view line) { read_event(line); }),
      complaints_([this](std::string_view line) {
        constexpr std::string_view prefix = "syncopate: ";
        last_words_ = line.starts_with(prefix) ? line.substr(prefix.size()) : line;
      }) {
  Pipe output = make_pipe();
  Pipe errors = make_pipe();
  std::vector<std::string> words{"syncopate",     "train",     "--json",        "--config",
                                 config.string(), "--run-dir", run_dir.string()};
  std::fflush(nullptr);
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) {
    throw_system_error("start a run");
  }
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) {
      ::_exit(exit_status::failure);  // the parent died before the line above
    }
    ::setpgid(0, 0);
    signals.leave_in_child();
    become(std::move(words), output.write.get(), errors.write.get());
  }
  output_ = std::move(output.read);
  errors_ = std::move(errors.read);
}

TrainProcess::~TrainProcess() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
}

void TrainProcess::read() {
  read_lines(output_, events_);
  read_lines(errors_, complaints_);
}

bool TrainProcess::has_ended() {
  int status = 0;
  if (pid_ > 0 && ::waitpid(pid_, &status, WNOHANG) == pid_) {
    pid_ = -1;
    exit_status_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    read();
  }
  return pid_ < 0;
}

void TrainProcess::read_event(std::string_view line) {
  const Json event = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  const std::string kind = event.is_object() ? event.value("event", "") : "";
  if (kind == "status") {
    epoch_ = event.value("epoch", 0.0);
    training_seconds_ = event.value("training_seconds", 0.0);
  } else if (kind == "failed") {
    diverged_ = event.value("kind", "") == "KIND_NOT_FINITE";
  }
}

}  // namespace syncopate::cli
