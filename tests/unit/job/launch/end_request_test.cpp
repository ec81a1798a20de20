// Goal:   a coordinator names the user or the process that has requested the end of its job.
// Method: processes send each other signals and report through pipes.

#include "base/end_request.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <functional>
#include <string>

namespace syncopate {
namespace {

/// Forks a coordinator and calls `request` with its process id. Returns what the coordinator says
/// about the requester.
std::string requester_after(const std::function<void(pid_t)>& request) {
  std::array<int, 2> pipe{};
  EXPECT_EQ(::pipe(pipe.data()), 0);
  const pid_t coordinator = ::fork();
  if (coordinator == 0) {
    sigset_t masked;
    sigset_t before;
    ::sigemptyset(&masked);
    ::sigaddset(&masked, SIGTERM);
    ::sigprocmask(SIG_BLOCK, &masked, &before);
    take_end_requests();
    const std::string nobody = end_requester();
    bool written = ::write(pipe[1], "r", 1) == 1;
    while (!end_requested()) {
      ::sigsuspend(&before);
    }
    const std::string text = nobody + end_requester();
    written = written && ::write(pipe[1], text.data(), text.size()) > 0;
    ::_exit(written ? 0 : 1);
  }
  ::close(pipe[1]);
  std::string said(1, '\0');
  EXPECT_EQ(::read(pipe[0], said.data(), 1), 1);
  request(coordinator);
  EXPECT_EQ(::waitpid(coordinator, nullptr, 0), coordinator);
  said.resize(200);
  said.resize(static_cast<std::size_t>(::read(pipe[0], said.data(), said.size())));
  ::close(pipe[0]);
  return said;
}

TEST(EndRequest, NamesItsRequester) {
  EXPECT_EQ(requester_after([](pid_t process) { request_end_of(process, SIGINT); }), "Ctrl-C");
  EXPECT_EQ(requester_after([](pid_t process) { request_end_of(process, SIGTERM); }), "SIGTERM");
  EXPECT_EQ(requester_after([](pid_t process) { request_end_of(process, SIGHUP); }), "SIGHUP");
  EXPECT_EQ(requester_after([](pid_t process) { request_end_of(process, 0); }),
            "the end of the process that reads its output");
  EXPECT_EQ(requester_after([](pid_t process) { ::kill(process, SIGTERM); }),
            fmt::format("SIGTERM from process {}", ::getpid()));
}

}  // namespace
}  // namespace syncopate
