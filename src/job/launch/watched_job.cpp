#include "job/launch/watched_job.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <utility>

#include "base/errors.hpp"
#include "base/log.hpp"

namespace syncopate {
namespace {

/// The threads that a fork does no harm to: this one, and those of OpenBLAS, which ends them before
/// a fork and starts them again at its next call.
std::size_t allowed_threads() {
  using ThreadCount = int (*)();
  const auto count =
      reinterpret_cast<ThreadCount>(::dlsym(RTLD_DEFAULT, "openblas_get_num_threads"));
  return count == nullptr ? 1 : static_cast<std::size_t>(std::max(1, count()));
}

/// A forked process would inherit the locks of other threads without the threads.
void check_single_thread() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  const auto threads = static_cast<std::size_t>(std::distance(begin(tasks), end(tasks)));
  if (threads > allowed_threads()) {
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

int run_watched(Supervisor::Options job, log::Verbosity verbosity, JobView& view) {
  check_single_thread();
  for (Child& child : job.children) {
    set_up_log(child, verbosity);
  }
  const Supervisor::Result result = Supervisor(std::move(job), view).run();
  view.ended(result.exit_status, result.failure);
  return result.exit_status;
}

}  // namespace syncopate
