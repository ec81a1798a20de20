// Goal:   fibers can pause and resume anywhere, also in exception handlers, on separate stacks.
// Method: bodies record what they do; the test compares the order of the records and the C++
//         runtime's own count of exceptions.

#include "sim/fiber.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

namespace syncopate::sim {
namespace {

constexpr std::size_t stack_bytes = std::size_t{1} << 20;

/// Makes a fiber whose body can pause itself.
class Pausing {
 public:
  explicit Pausing(std::function<void(Pausing&)> body)
      : fiber_(stack_bytes, [this, body = std::move(body)] { body(*this); }) {}

  void pause() { fiber_.pause(); }
  void resume() { fiber_.resume(); }
  bool ended() const { return fiber_.ended(); }

 private:
  Fiber fiber_;
};

TEST(Fiber, RunsFromPauseToPause) {
  std::vector<std::string> notes;
  Pausing fiber([&](Pausing& self) {
    notes.emplace_back("one");
    self.pause();
    notes.emplace_back("two");
  });
  EXPECT_THAT(notes, testing::IsEmpty()) << "nothing runs before it is resumed";
  fiber.resume();
  notes.emplace_back("between");
  EXPECT_FALSE(fiber.ended());
  fiber.resume();
  EXPECT_TRUE(fiber.ended());
  EXPECT_THAT(notes, testing::ElementsAre("one", "between", "two"));
}

TEST(Fiber, NeverResumedIsDestroyedWithoutRunning) {
  bool ran = false;
  {
    const Pausing fiber([&](Pausing&) { ran = true; });
  }
  EXPECT_FALSE(ran);
}

TEST(Fiber, HandlersOfDifferentFibersInterleave) {
  std::vector<std::string> notes;
  const auto thrower = [&notes](const std::string& name) {
    return [&notes, name](Pausing& self) {
      try {
        throw std::runtime_error(name);
      } catch (const std::exception&) {
        self.pause();
        try {
          throw;  // must rethrow the exception of this fiber, although others have thrown since
        } catch (const std::exception& mine) {
          notes.emplace_back(mine.what());
        }
        self.pause();
        EXPECT_EQ(std::string(name), notes.back());
      }
    };
  };
  Pausing first(thrower("first"));
  Pausing second(thrower("second"));
  first.resume();
  second.resume();
  EXPECT_EQ(std::current_exception(), nullptr) << "the outside handles nothing";
  first.resume();
  first.resume();
  second.resume();
  second.resume();
  EXPECT_TRUE(first.ended());
  EXPECT_TRUE(second.ended());
  EXPECT_THAT(notes, testing::ElementsAre("first", "second"));
}

class PausesWhenDestroyed {
 public:
  explicit PausesWhenDestroyed(Pausing& fiber) : fiber_(fiber) {}
  PausesWhenDestroyed(const PausesWhenDestroyed&) = delete;
  PausesWhenDestroyed& operator=(const PausesWhenDestroyed&) = delete;
  ~PausesWhenDestroyed() {
    fiber_.pause();
    EXPECT_EQ(std::uncaught_exceptions(), 1);
  }

 private:
  Pausing& fiber_;
};

TEST(Fiber, PausesWhileAnExceptionUnwindsIt) {
  bool caught = false;
  Pausing fiber([&](Pausing& self) {
    try {
      const PausesWhenDestroyed guard(self);
      throw std::runtime_error("in flight");
    } catch (const std::runtime_error&) {
      caught = true;
    }
  });
  fiber.resume();
  EXPECT_FALSE(caught);
  EXPECT_EQ(std::uncaught_exceptions(), 0) << "it flies in the fiber, not here";
  EXPECT_THROW(throw std::logic_error("ours"), std::logic_error);
  fiber.resume();
  EXPECT_TRUE(caught);
  EXPECT_TRUE(fiber.ended());
}

/// Calls itself `depth` times, with stack frames of at least a kilobyte.
int dig(int depth, const std::function<void()>& at_the_bottom) {
  volatile char frame[1024] = {};
  frame[0] = 1;
  if (depth == 0) {
    at_the_bottom();
    return frame[0];
  }
  return dig(depth - 1, at_the_bottom) + frame[0];
}

TEST(Fiber, StacksAreDeepAndApart) {
  int reached = 0;
  std::vector<std::unique_ptr<Pausing>> fibers;
  for (int i = 0; i < 10; ++i) {
    fibers.push_back(std::make_unique<Pausing>(
        [&](Pausing& self) { reached += dig(300, [&self] { self.pause(); }); }));
    fibers.back()->resume();
  }
  for (const auto& fiber : fibers) {
    fiber->resume();
    EXPECT_TRUE(fiber->ended());
  }
  EXPECT_EQ(reached, 10 * 301);
}

}  // namespace
}  // namespace syncopate::sim
