#include "base/thread_stacks.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <system_error>
#include <utility>

#include "base/frame_names.hpp"
#include "base/mutex.hpp"
#include "base/stack_answers.hpp"

namespace syncopate {
namespace {

namespace fs = std::filesystem;

int own_id() {
  return static_cast<int>(::syscall(SYS_gettid));
}

std::string content(const fs::path& path) {
  std::ifstream file(path);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  while (!text.empty() && text.back() == '\n') {
    text.pop_back();
  }
  return text;
}

fs::path folder_of(int thread) {
  return fs::path("/proc/self/task") / std::to_string(thread);
}

/// In ascending order, the first thread of the process first.
std::vector<int> other_threads() {
  std::vector<int> threads;
  std::error_code error;
  for (fs::directory_iterator entry("/proc/self/task", error), end; !error && entry != end;
       entry.increment(error)) {
    const int thread = std::atoi(entry->path().filename().c_str());
    if (thread != own_id()) {
      threads.push_back(thread);
    }
  }
  std::ranges::sort(threads);
  return threads;
}

/// Describes a thread by its files in /proc; empty if it has ended.
std::optional<ThreadStack> look_at(int thread) {
  const std::string stat = content(folder_of(thread) / "stat");
  const std::size_t name_end = stat.rfind(") ");  // a name may contain anything
  if (name_end == std::string::npos || name_end + 2 >= stat.size()) {
    return std::nullopt;
  }
  const std::string wait = content(folder_of(thread) / "wchan");
  return ThreadStack{
      .id = thread,
      .name = thread == ::getpid() ? "main" : content(folder_of(thread) / "comm"),
      .state = stat[name_end + 2],
      .waits_in = wait == "0" ? "" : wait,
      .frames = {},
  };
}

bool blocks_signal(int thread) {
  constexpr std::string_view key = "SigBlk:\t";
  const std::string status = content(folder_of(thread) / "status");
  const std::size_t found = status.find(key);
  std::uint64_t blocked = 0;
  if (found != std::string::npos) {
    const char* const digits = status.data() + found + key.size();
    std::from_chars(digits, status.data() + status.size(), blocked, 16);
  }
  return ((blocked >> (static_cast<unsigned>(stack_signal()) - 1)) & 1U) != 0;
}

/// True if a thread can answer a signal. A stopped thread answers only when it continues, and some
/// libraries have a thread that blocks signals.
bool can_answer(const ThreadStack& thread) {
  return std::string_view("tTZX").find(thread.state) == std::string_view::npos &&
         !blocks_signal(thread.id);
}

void take_answer(const std::vector<void*>& frames, FrameNames& names, ThreadStack& into) {
  for (std::size_t i = 0; i < frames.size(); ++i) {
    into.frames.push_back(names.of(frames[i], /*call=*/i > 0));
  }
  into.answered = true;
}

/// Takes the position of a thread that does not run, which the system knows even if a debugger
/// holds it.
void take_position(FrameNames& names, ThreadStack& into) {
  const std::string call = content(folder_of(into.id) / "syscall");
  const std::size_t last = call.rfind(" 0x");
  std::uintptr_t position = 0;
  if (last != std::string::npos) {
    std::from_chars(call.data() + last + 3, call.data() + call.size(), position, 16);
  }
  if (position != 0) {
    into.frames = {names.of(std::bit_cast<void*>(position), /*call=*/false)};
  }
}

Mutex& asking() {
  static Mutex mutex;
  return mutex;
}

std::vector<ThreadStack> look_at_all() {
  std::vector<ThreadStack> stacks;
  for (const int thread : other_threads()) {
    if (auto found = look_at(thread)) {
      stacks.push_back(std::move(*found));
    }
  }
  return stacks;
}

}  // namespace

void prepare_thread_stacks() {
  prepare_stack_answers();
}

std::vector<ThreadStack> thread_stacks(Duration limit) {
  const MutexLock one_at_a_time(asking());
  std::vector<ThreadStack> stacks = look_at_all();
  std::vector<int> asked;
  for (const ThreadStack& stack : stacks) {
    if (can_answer(stack)) {
      asked.push_back(stack.id);
    }
  }
  const StackAnswers answers = ask_for_stacks(asked, limit);
  FrameNames names;
  for (ThreadStack& stack : stacks) {
    const auto answer = answers.find(stack.id);
    if (answer != answers.end()) {
      take_answer(answer->second, names, stack);
    } else {
      take_position(names, stack);
    }
  }
  return stacks;
}

}  // namespace syncopate
