#include "job/launch/watched_job.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <utility>

#include "base/errors.hpp"
#include "base/log.hpp"
#include "cli/exit_status.hpp"
#include "cli/view/view.hpp"

namespace syncopate::cli {
namespace {

/// The threads that a fork leaves in order: this one, and those of OpenBLAS, which starts them when it
/// is loaded, ends them before a fork and starts them again when it is next called.
std::size_t threads_that_may_be() {
  using ThreadCount = int (*)();
  const auto count =
      reinterpret_cast<ThreadCount>(::dlsym(RTLD_DEFAULT, "openblas_get_num_threads"));
  return count == nullptr ? 1 : static_cast<std::size_t>(std::max(1, count()));
}

/// A forked copy of a process with other threads would have their locks without them.
void check_single_thread() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  const auto threads = static_cast<std::size_t>(std::distance(begin(tasks), end(tasks)));
  if (threads > threads_that_may_be()) {
    throw InternalError(
        fmt::format("{} threads run where the processes of a job are forked", threads));
  }
}

/// Lets a child log to its standard error; the supervisor puts its name before each line.
void set_up_log(Child& child, log::Verbosity verbosity) {
  child.body = [verbosity, body = std::move(child.body)] {
    log::set_up("", verbosity);
    return body();
  };
}

}  // namespace

int run_watched(const TrainCommand& command, Supervisor::Options job) {
  check_single_thread();
  for (Child& child : job.children) {
    set_up_log(child, command.output.verbosity);
  }
  const auto view = make_view(command.config, command.output);
  const Supervisor::Result result = Supervisor(std::move(job), *view).run();
  view->finish();
  const std::string error = view->error().value_or(result.failure);
  if (result.exit_status != exit_status::success && !error.empty()) {
    print_error(error.c_str());
  }
  return result.exit_status;
}

}  // namespace syncopate::cli
