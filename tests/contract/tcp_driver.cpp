// Goal:   a driver runs handlers on its own thread and on waiting threads, never two at a time, and
//         runs them all.
// Method: handlers that note their thread, or count without a lock, which ThreadSanitizer watches;
//         waiting threads that come and go.

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

  /// The thread that runs a handler which is posted now.
  std::thread::id thread_of_next_handler() {
    std::promise<std::thread::id> ran;
    asio::post(context_, [&] { ran.set_value(std::this_thread::get_id()); });
    return ran.get_future().get();
  }

  /// Does something on this thread while it runs handlers, and goes on running them for at most the
  /// usual time.
  void while_helping(const std::function<void()>& work) {
    for (int looks = 0; looks < 2;) {
      looks = 0;  // the first look is before this thread begins to run handlers
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

/// The other thread runs a handler that was posted while this thread ran handlers only if the
/// system paused this thread for that time.
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

/// `TearDown` would wait for ever if the end were overlooked.
TEST_F(TcpDriver, EndsWhereTheLastWorkEndsOnAThreadThatWaits) {
  while_helping([&] { work_.reset(); });
}

}  // namespace
}  // namespace syncopate::tcp
