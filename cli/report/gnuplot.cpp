#include "cli/report/gnuplot.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/errors.hpp"
#include "base/file.hpp"
#include "base/printable.hpp"
#include "job/launch/descriptor.hpp"

extern char** environ;

namespace syncopate::cli {
namespace {

namespace fs = std::filesystem;

/// A started program; `errors` is its standard error.
struct Started {
  pid_t process = -1;
  Descriptor errors;
};

/// Starts the program in `folder`, without input; its output is dropped. Returns no process if
/// there is no such program.
Started start(const std::string& program, const std::string& script, const fs::path& folder) {
  Pipe errors = make_pipe();
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, errors.write.get(), STDERR_FILENO);
  std::string name = program;
  std::string file = script;
  std::array<char*, 3> words{name.data(), file.data(), nullptr};
  Started started;
  const int error =
      ::posix_spawnp(&started.process, program.c_str(), &actions, nullptr, words.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error == ENOENT) {
    started.process = -1;
  } else if (error != 0) {
    throw Error(fmt::format("cannot start {}: {}", program, std::strerror(error)));
  }
  started.errors = std::move(errors.read);
  return started;
}

std::string all_of(const Descriptor& from) {
  std::string text;
  std::array<char, 4096> bytes;
  for (;;) {
    pollfd ready{.fd = from.get(), .events = POLLIN, .revents = 0};
    ::poll(&ready, 1, -1);
    const ssize_t count = ::read(from.get(), bytes.data(), bytes.size());
    if (count > 0) {
      text.append(bytes.data(), static_cast<std::size_t>(count));
    } else if (count == 0 || (errno != EINTR && errno != EAGAIN)) {
      return text;
    }
  }
}

int status_of(pid_t process) {
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

/// The last line with text: gnuplot repeats the command before it.
std::string last_line(const std::string& text) {
  const std::size_t end = text.find_last_not_of(" \n");
  const std::size_t begin = text.find_last_of('\n', end);
  return end == std::string::npos ? "" : text.substr(begin + 1, end - begin);
}

/// Removes a figure that was drawn in part or that an earlier report left.
void remove_drawings(const fs::path& folder, const std::string& name) {
  for (const char* format : {".svg", ".png", ".pdf"}) {
    std::error_code none;
    fs::remove(folder / (name + format), none);
  }
}

}  // namespace

void make_figures_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    throw DataError(fmt::format("cannot make the folder {}: {}", folder.string(), error.message()));
  }
}

std::vector<std::string> draw(const std::vector<Plot>& plots, const fs::path& folder,
                              const std::string& program) {
  make_figures_folder(folder);
  for (const Plot& plot : plots) {
    write_file(folder / (plot.name + ".gp"), script_of(plot));
  }
  std::vector<std::string> missing;
  for (const Plot& plot : plots) {
    const std::string script = plot.name + ".gp";
    const Started started = start(program, script, folder);
    if (started.process < 0) {
      return {"no figures: gnuplot is not installed; install gnuplot-nox and repeat"};
    }
    const std::string complaint = all_of(started.errors);
    if (status_of(started.process) != 0) {
      remove_drawings(folder, plot.name);
      missing.push_back(fmt::format("no figure {}: {} refuses {}: {}", plot.name, program,
                                    (folder / script).string(), printable(last_line(complaint))));
    }
  }
  return missing;
}

}  // namespace syncopate::cli
