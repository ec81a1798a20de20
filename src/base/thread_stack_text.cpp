#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/log.hpp"
#include "base/stack_answers.hpp"
#include "base/thread_stacks.hpp"

namespace syncopate {
namespace {

/// The supervisor waits not much longer for a process, once the user has requested the end.
constexpr Duration time_to_answer = std::chrono::milliseconds(200);

std::string_view meaning_of(char state) {
  switch (state) {
    case 'R': return "runs";
    case 'S': return "sleeps";
    case 'D': return "waits for a disk or driver";
    case 'T': return "is stopped";
    case 't': return "is held by a debugger";
    case 'Z': return "has ended";
    default: return "is in an unknown state";
  }
}

std::string describe(const ThreadStack& stack) {
  std::string text = fmt::format("({}), {}", stack.name, meaning_of(stack.state));
  if (!stack.waits_in.empty()) {
    text += fmt::format(" in {}", stack.waits_in);
  }
  text += stack.answered ? ":" : ", does not answer:";
  for (const std::string& frame : stack.frames) {
    text += "\n    " + frame;
  }
  return text;
}

}  // namespace

std::vector<std::string> to_text(const std::vector<ThreadStack>& stacks) {
  std::vector<std::pair<std::string, std::vector<int>>> groups;
  for (const ThreadStack& stack : stacks) {
    const std::string description = describe(stack);
    const auto known =
        std::ranges::find_if(groups, [&](const auto& group) { return group.first == description; });
    if (known == groups.end()) {
      groups.push_back({description, {stack.id}});
    } else {
      known->second.push_back(stack.id);
    }
  }
  std::vector<std::string> texts;
  for (const auto& [description, ids] : groups) {
    texts.push_back(fmt::format("{} {} {}", ids.size() == 1 ? "thread" : "threads",
                                fmt::join(ids, ", "), description));
  }
  return texts;
}

void log_thread_stacks(std::string_view headline) {
  if (!can_ask_for_stacks()) {
    return;
  }
  try {
    log::warn("{}", headline);
    for (const std::string& text : to_text(thread_stacks(time_to_answer))) {
      log::warn("{}", text);
    }
  } catch (const std::exception& error) {
    log::warn("the stacks of this process cannot be read: {}", error.what());
  }
}

}  // namespace syncopate
