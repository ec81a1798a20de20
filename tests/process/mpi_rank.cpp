// A rank of the test of processes under launchers of MPI, without a job:
//
//     syncopate_mpi_rank LIBRARY RANKS wait|fail
//
// Says "rank R of N is PROCESS" when all ranks have met. Then `wait` waits for a message that nobody sends, until the
// end of the job; with `fail`, the last rank says what has failed, and ends them all.

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "base/errors.hpp"
#include "job/launch/exit_status.hpp"
#include "transport/mpi/mpi_session.hpp"
#include "transport/steady_time.hpp"

namespace {

using namespace syncopate;

/// In one write, so that lines of several ranks do not mix.
void say(const std::string& line) {
  const std::string whole = line + "\n";
  if (::write(STDOUT_FILENO, whole.data(), whole.size()) < 0) {
    throw DataError("nobody reads what this rank says");
  }
}

int take_part(const std::string& library, std::uint32_t ranks, bool fails) {
  const char* const modules = std::getenv("SYNCOPATE_MPI_MODULES");
  const auto session =
      mpi::start(library == "mpich" ? mpi::Library::mpich : mpi::Library::open_mpi,
                 {.expected_size = ranks, .allreduce = false, .modules = modules ? modules : ""});
  const auto hub = session->rank() == 0 ? session->listen({.token = "t"}) : nullptr;
  const auto node = session->join({.token = "t"});
  session->barrier(steady_now() + std::chrono::minutes(1));
  say(fmt::format("rank {} of {} is {}", session->rank(), session->size(), ::getpid()));
  if (fails && session->rank() == session->size() - 1) {
    print_error("the data is gone");
    session->abort(exit_status::failure);
  }
  node->receive(coordinator_node, Tag{100}, steady_now() + std::chrono::minutes(5));
  return exit_status::success;
}

}  // namespace

int main(int argc, char** argv) {
  return syncopate::guarded([&] {
    return argc == 4 ? take_part(argv[1], static_cast<std::uint32_t>(std::stoul(argv[2])),
                                 std::string(argv[3]) == "fail")
                     : syncopate::exit_status::refused;
  });
}
