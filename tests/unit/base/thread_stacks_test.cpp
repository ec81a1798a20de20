// Goal:   the stacks of a process's threads show where each thread is, and a thread that cannot
//         answer does not block the others.
// Method: threads that wait in a function with a known name, which must appear in their stacks.

#include "base/thread_stacks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <functional>
#include <future>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace syncopate {

/// A gate at which threads wait.
struct Gate {
  std::mutex mutex;
  std::condition_variable changed;
  int entries = 0;
  int stage = 0;
};

}  // namespace syncopate

/// Waits at the gate. Its exported name is not mangled, so that it appears like this in a stack.
extern "C" [[gnu::noinline]] void syncopate_test_waits_here(syncopate::Gate& gate, int stage) {
  std::unique_lock lock(gate.mutex);
  ++gate.entries;
  gate.changed.notify_all();
  gate.changed.wait(lock, [&] { return gate.stage > stage; });
}

namespace syncopate {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;
using namespace std::chrono_literals;

void set_name(const std::string& name) {
  pthread_setname_np(pthread_self(), name.c_str());
}

/// Returns the stacks of the threads called `name`.
std::vector<ThreadStack> stacks_of(const std::string& name, Duration limit) {
  std::vector<ThreadStack> stacks = thread_stacks(limit);
  std::erase_if(stacks, [&](const ThreadStack& stack) { return stack.name != name; });
  return stacks;
}

class ThreadStacksTest : public testing::Test {
 protected:
  ThreadStacksTest() { prepare_thread_stacks(); }

  ~ThreadStacksTest() override {
    open(1 << 20);
    for (std::thread& thread : threads_) {
      thread.join();
    }
  }

  ThreadStacksTest(const ThreadStacksTest&) = delete;
  ThreadStacksTest& operator=(const ThreadStacksTest&) = delete;

  void start(const std::string& name, std::function<void()> body) {
    threads_.emplace_back([name, body = std::move(body)] {
      set_name(name);
      body();
    });
  }

  /// Waits until threads have entered the function `count` times. It is on the stacks of those that
  /// wait.
  void await_entries(int count) {
    std::unique_lock lock(gate_.mutex);
    gate_.changed.wait(lock, [&] { return gate_.entries == count; });
  }

  /// Lets threads continue that wait at an earlier stage.
  void open(int stage) {
    const std::lock_guard lock(gate_.mutex);
    gate_.stage = stage;
    gate_.changed.notify_all();
  }

  Gate gate_;
  std::vector<std::thread> threads_;
};

/// Matches a frame such as "syncopate_test_waits_here (base_tests+0x1234)".
testing::Matcher<std::vector<std::string>> waits_here() {
  return Contains(AllOf(StartsWith("syncopate_test_waits_here ("), HasSubstr("_tests+0x")));
}

TEST_F(ThreadStacksTest, ShowsWhereAThreadWaits) {
  start("waiter", [this] { syncopate_test_waits_here(gate_, 0); });
  await_entries(1);
  const auto stacks = stacks_of("waiter", 10s);
  ASSERT_THAT(stacks, SizeIs(1));
  EXPECT_TRUE(stacks[0].answered);
  EXPECT_THAT(stacks[0].frames, waits_here());
  EXPECT_GE(stacks[0].frames.size(), 3U);
  EXPECT_THAT(stacks[0].frames, testing::Not(Contains(HasSubstr("thread_stacks"))));
}

TEST_F(ThreadStacksTest, ShowsManyThreadsAndNotTheOneThatAsks) {
  constexpr int count = 40;
  for (int thread = 0; thread < count; ++thread) {
    start("many", [this] { syncopate_test_waits_here(gate_, 0); });
  }
  await_entries(count);
  for (int time = 0; time < 20; ++time) {
    const auto stacks = stacks_of("many", 10s);
    ASSERT_THAT(stacks, SizeIs(count));
    for (const ThreadStack& stack : stacks) {
      EXPECT_TRUE(stack.answered);
      EXPECT_THAT(stack.frames, waits_here());
    }
    EXPECT_THAT(stacks_of("main", 10s), IsEmpty());
  }
}

TEST_F(ThreadStacksTest, NamesTheFirstThreadMain) {
  std::vector<ThreadStack> seen;
  std::promise<void> started;  // while a thread starts another one, it takes no signals
  start("asker", [&] {
    started.get_future().wait();
    const auto stacks = thread_stacks(10s);
    const std::lock_guard lock(gate_.mutex);
    seen = stacks;
    gate_.entries = 1;
    gate_.changed.notify_all();
  });
  started.set_value();
  await_entries(1);
  ASSERT_THAT(seen, testing::Not(IsEmpty()));
  EXPECT_EQ(seen.front().name, "main");
  EXPECT_EQ(seen.front().id, ::getpid());
  EXPECT_TRUE(seen.front().answered);
}

TEST_F(ThreadStacksTest, ReportsAThreadThatDoesNotAnswer) {
  start("deaf", [this] {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    syncopate_test_waits_here(gate_, 0);
    pthread_sigmask(SIG_UNBLOCK, &all, nullptr);
    syncopate_test_waits_here(gate_, 1);
  });
  start("waiter", [this] { syncopate_test_waits_here(gate_, 1); });
  await_entries(2);
  const auto stacks = thread_stacks(10s);
  EXPECT_THAT(stacks, Contains(AllOf(
                          Field(&ThreadStack::name, "deaf"), Field(&ThreadStack::answered, false),
                          Field(&ThreadStack::frames, testing::SizeIs(testing::Le(1))))));
  EXPECT_THAT(stacks, Contains(AllOf(Field(&ThreadStack::name, "waiter"),
                                     Field(&ThreadStack::answered, true),
                                     Field(&ThreadStack::frames, waits_here()))));
  open(1);
  await_entries(3);
  EXPECT_THAT(stacks_of("deaf", 10s),
              ElementsAre(AllOf(Field(&ThreadStack::answered, true),
                                Field(&ThreadStack::frames, waits_here()))));
}

/// Holds a thread of the process as a debugger does, until the end of its scope.
class Debugger {
 public:
  explicit Debugger(int thread) {
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends_), 0);
    child_ = ::fork();
    if (child_ == 0) {
      hold(thread);
    }
    ::prctl(PR_SET_PTRACER, child_, 0, 0, 0);  // lets the child debug its parent
    const char go = 0;
    EXPECT_EQ(::write(ends_[0], &go, sizeof go), sizeof go);
    EXPECT_EQ(::read(ends_[0], &error_, sizeof error_), sizeof error_);
  }

  ~Debugger() {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
    ::close(ends_[0]);
    ::close(ends_[1]);
  }

  Debugger(const Debugger&) = delete;
  Debugger& operator=(const Debugger&) = delete;

  /// Returns the errno of the attempt to hold the thread; 0 if it is held.
  int error() const { return error_; }

 private:
  /// Runs in the child, whose end releases the thread.
  [[noreturn]] void hold(int thread) const {
    char go = 0;
    const bool well = ::read(ends_[1], &go, sizeof go) == sizeof go &&
                      ::ptrace(PTRACE_SEIZE, thread, 0, 0) == 0 &&
                      ::ptrace(PTRACE_INTERRUPT, thread, 0, 0) == 0 &&
                      ::waitpid(thread, nullptr, __WALL) == thread;
    const int error = well ? 0 : errno;
    for (ssize_t sent = ::write(ends_[1], &error, sizeof error);; sent = 0) {
      static_cast<void>(sent);
      ::pause();
    }
  }

  int ends_[2] = {-1, -1};
  pid_t child_ = -1;
  int error_ = 0;
};

TEST_F(ThreadStacksTest, ShowsWhereADebuggerHoldsAThread) {
  start("held", [this] { syncopate_test_waits_here(gate_, 0); });
  await_entries(1);
  const auto before = stacks_of("held", 10s);
  ASSERT_THAT(before, SizeIs(1));
  const Debugger debugger(before[0].id);
  if (debugger.error() != 0) {
    GTEST_SKIP() << "no debugger: " << std::strerror(debugger.error());
  }
  const auto held = stacks_of("held", 10s);
  ASSERT_THAT(held, SizeIs(1));
  EXPECT_EQ(held[0].state, 't');
  EXPECT_FALSE(held[0].answered);
  EXPECT_THAT(held[0].frames, ElementsAre(HasSubstr("libc"))) << "which has called the system";
}

TEST(ThreadStacks, NeedPreparation) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // in a new process
  const auto ask_unprepared = [] {
    Gate gate;
    const std::thread waiter([&] { syncopate_test_waits_here(gate, 0); });
    log_thread_stacks("a headline that nobody may read");
    const auto stacks = thread_stacks(10s);
    if (!stacks.empty() && std::ranges::none_of(stacks, &ThreadStack::answered)) {
      std::raise(SIGKILL);
    }
  };
  EXPECT_EXIT(ask_unprepared(), testing::KilledBySignal(SIGKILL), "^$");
}

TEST(ThreadStacks, AreOneTextForThreadsThatDoTheSame) {
  const ThreadStack pool{.id = 12,
                         .name = "pool",
                         .state = 'S',
                         .waits_in = "futex_wait",
                         .answered = true,
                         .frames = {"wait (libc.so.6+0x10)", "run (train+0x20)"}};
  ThreadStack twin = pool;
  twin.id = 14;
  const ThreadStack held{.id = 11,
                         .name = "main",
                         .state = 't',
                         .waits_in = "",
                         .answered = false,
                         .frames = {"poll (libc.so.6+0x30)"}};
  EXPECT_THAT(to_text({held, pool, twin}),
              ElementsAre("thread 11 (main), is held by a debugger, does not answer:\n"
                          "    poll (libc.so.6+0x30)",
                          "threads 12, 14 (pool), sleeps in futex_wait:\n"
                          "    wait (libc.so.6+0x10)\n"
                          "    run (train+0x20)"));
}

}  // namespace
}  // namespace syncopate
