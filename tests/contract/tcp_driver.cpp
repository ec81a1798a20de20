// Goal:   a driver runs every handler, on its own thread or on waiting threads, and never two at a
//         time.
// Method: handlers record their thread, or count without a lock, so that ThreadSanitizer reports
//         handlers that overlap; threads start and stop waiting.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <atomic>
#include <functional>
#include <future>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "transport/steady_time.hpp"
#include "transport/tcp/driver.hpp"

namespace syncopate::tcp {
namespace {

using testing::ElementsAre;

class TcpDriver : public testing::Test {
 protected:
  void SetUp() override { driver_.start(); }

  void TearDown() override {
    work_.reset();
    driver_.join();
  }

  /// Posts a handler and returns the thread that ran it.
  std::thread::id thread_of_next_handler() {
    std::promise<std::thread::id> ran;
    asio::post(context_, [&] { ran.set_value(std::this_thread::get_id()); });
    return ran.get_future().get();
  }

  /// Calls `work` while this thread runs handlers, and goes on running them for at most the usual
  /// time.
  void while_helping(const std::function<void()>& work) {
    for (int looks = 0; looks < 2;) {
      looks = 0;  // the first check comes before this thread begins to run handlers
      driver_.make_progress(
          [&] {
            if (++looks == 2) {
              work();
            }
            return false;
          },
          no_deadline);
    }
  }

  asio::io_context context_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_ =
      asio::make_work_guard(context_);
  std::vector<std::string> failures_;
  Driver driver_{context_,
                 [this](const std::exception& error) { failures_.emplace_back(error.what()); }};
};

TEST_F(TcpDriver, RunsHandlersOnAThreadOfItsOwn) {
  const std::thread::id first = thread_of_next_handler();
  EXPECT_NE(first, std::this_thread::get_id());
  EXPECT_EQ(thread_of_next_handler(), first);
}

/// While this thread runs handlers, the driver's own thread runs one only if the system has paused
/// this thread. Hence the attempts.
TEST_F(TcpDriver, RunsThemOnTheThreadThatWaits) {
  int on_this_thread = 0;
  for (int attempt = 0; attempt < 100; ++attempt) {
    std::promise<std::thread::id> ran;
    std::future<std::thread::id> answer = ran.get_future();
    while_helping(
        [&] { asio::post(context_, [&] { ran.set_value(std::this_thread::get_id()); }); });
    on_this_thread += answer.get() == std::this_thread::get_id() ? 1 : 0;
  }
  EXPECT_GT(on_this_thread, 0);
}

TEST_F(TcpDriver, TakesTheWorkBackWhenNobodyWaits) {
  const std::thread::id own = thread_of_next_handler();
  int looks = 0;
  driver_.make_progress([&] { return ++looks > 3; }, no_deadline);
  EXPECT_EQ(thread_of_next_handler(), own);
}

TEST_F(TcpDriver, LetsOneHelpAtATime) {
  int looks_of_the_second = 0;
  while_helping([&] {
    std::thread second(
        [&] { driver_.make_progress([&] { return ++looks_of_the_second, false; }, no_deadline); });
    second.join();
  });
  EXPECT_EQ(looks_of_the_second, 1);
}

TEST_F(TcpDriver, HelpsUntilTheDeadlineAndNotForLong) {
  int looks = 0;
  const auto never = [&] { return ++looks, false; };
  driver_.make_progress(never, steady_now());
  EXPECT_EQ(looks, 1);
  driver_.make_progress(never, no_deadline);
  EXPECT_GT(looks, 1);
}

TEST_F(TcpDriver, GoesOnAfterAHandlerHasFailed) {
  asio::post(context_, [] { throw std::runtime_error("on its own thread"); });
  thread_of_next_handler();
  while_helping([&] { asio::post(context_, [] { throw std::runtime_error("on another"); }); });
  thread_of_next_handler();
  EXPECT_THAT(failures_, ElementsAre("on its own thread", "on another"));
}

TEST_F(TcpDriver, RunsEveryHandlerOnceWhileHelpersComeAndGo) {
  constexpr int threads = 4;
  constexpr int each = 2000;
  int count = 0;  // without a lock: two handlers at a time would be a race
  std::vector<std::thread> callers;
  for (int caller = 0; caller < threads; ++caller) {
    callers.emplace_back([&] {
      for (int i = 0; i < each; ++i) {
        std::atomic<bool> ran = false;
        asio::post(context_, [&] {
          ++count;
          ran = true;
        });
        while (!ran) {
          driver_.make_progress([&] { return ran.load(); }, no_deadline);
        }
      }
    });
  }
  for (std::thread& caller : callers) {
    caller.join();
  }
  EXPECT_EQ(count, threads * each);
}

/// If the driver missed the end of its work, `TearDown` would wait for ever.
TEST_F(TcpDriver, EndsWhereTheLastWorkEndsOnAThreadThatWaits) {
  while_helping([&] { work_.reset(); });
}

}  // namespace
}  // namespace syncopate::tcp
