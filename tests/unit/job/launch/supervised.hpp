#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "job/launch/supervisor.hpp"

namespace syncopate::test {

class Recorder : public Watcher {
 public:
  std::vector<std::string> events, lines, notices;
  std::function<void()> on_event = [] {};
  std::function<void()> on_output = [] {};
  std::function<void()> on_notice = [] {};

  void event(std::string_view line) override {
    events.emplace_back(line);
    on_event();
  }
  void output(std::string_view process, std::string_view line) override {
    lines.push_back(std::string(process) + ": " + std::string(line));
    on_output();
  }
  void notice(std::string_view text) override {
    notices.emplace_back(text);
    on_notice();
  }
  Duration refresh_period() const override { return {}; }
  void refresh() override {}
  void resized() override {}
};

inline void say(int descriptor, std::string_view text) {
  ASSERT_EQ(::write(descriptor, text.data(), text.size()), static_cast<ssize_t>(text.size()));
}

/// Blocks until the process is killed.
inline int wait_for_the_end() {
  for (;;) {
    ::pause();
  }
}

/// Waits for the first `count` ends of programs and returns them.
inline std::vector<ProgramEnd> ends_of(ProgramEnds& ends, std::size_t count) {
  std::vector<ProgramEnd> taken;
  while (taken.size() < count) {
    const auto more = ends.take();
    taken.insert(taken.end(), more.begin(), more.end());
    ::poll(nullptr, 0, 1);
  }
  return taken;
}

class SupervisorTest : public testing::Test {
 protected:
  SupervisorTest() {
    Pipe pipe = make_pipe();
    options_.events = std::move(pipe.read);
    events_ = pipe.write.get();
    alone_.push_back(std::move(pipe.write));
  }

  void add(const std::string& name, std::function<int()> body) {
    options_.children.push_back({.name = name, .body = std::move(body)});
  }

  Supervisor::Result run() {
    options_.children.front().alone = std::move(alone_);
    return Supervisor(std::move(options_), recorder_).run();
  }

  Supervisor::Options options_;
  Recorder recorder_;
  int events_;  ///< the descriptor to which the coordinator writes its events

 private:
  std::vector<Descriptor> alone_;
};

}  // namespace syncopate::test
