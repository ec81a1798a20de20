// A rank without a job, for the test of processes under launchers of MPI:
//
//     syncopate_mpi_rank LIBRARY RANKS wait|fail
//
// Prints "rank R of N is PROCESS" when all ranks are connected. Then `wait` waits for a message
// that never comes, until the end of the job; with `fail`, the last rank prints an error and ends
// all of them.

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

/// Prints a line in one write, so that lines of several ranks do not mix.
void print_whole(const std::string& line) {
  const std::string whole = line + "\n";
  if (::write(STDOUT_FILENO, whole.data(), whole.size()) < 0) {
    throw DataError("standard output of this rank is closed");
  }
}

int take_part(const std::string& library, std::uint32_t ranks, bool fails) {
  const char* const modules = std::getenv("SYNCOPATE_MPI_MODULES");
  const auto session =
      mpi::start(library == "mpich" ? mpi::Library::mpich : mpi::Library::open_mpi,
                 {.expected_size = ranks, .allreduce = false, .modules = modules ? modules : ""});
  const auto coordinator = session->rank() == 0 ? session->listen({.token = "t"}) : nullptr;
  const auto node = session->join({.token = "t"});
  session->barrier(steady_now() + std::chrono::minutes(1));
  print_whole(fmt::format("rank {} of {} is {}", session->rank(), session->size(), ::getpid()));
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
