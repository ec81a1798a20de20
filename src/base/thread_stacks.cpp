#include "base/thread_stacks.hpp"

#include <execinfo.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <system_error>

#include "base/frame_names.hpp"
#include "base/log.hpp"
#include "base/mutex.hpp"

namespace syncopate {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_threads = 256;
constexpr std::size_t most_frames = 64;
/// The supervisor waits not much longer for a process, once the user has requested the end.
constexpr Duration time_to_answer = std::chrono::milliseconds(200);

enum class Stage : std::uint64_t { free, asked, writing, done };

/// An answer. Its key is the thread's id and a stage in one word, so that a late handler cannot
/// write where another thread is asked meanwhile.
struct Slot {
  std::atomic<std::uint64_t> key{0};
  int count = 0;
  void* below = nullptr;  ///< where the handler returns to
  std::array<void*, most_frames> frames{};
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "a signal handler uses it");

constexpr std::uint64_t key_of(int thread, Stage stage) {
  return static_cast<std::uint64_t>(thread) << 2U | static_cast<std::uint64_t>(stage);
}

constexpr Stage stage_of(std::uint64_t key) {
  return static_cast<Stage>(key & 3U);
}

// A signal handler has no other way to its data.
std::array<Slot, most_threads> slots;
std::atomic<bool> prepared = false;

int stack_signal() {
  return SIGRTMIN + 3;
}

int own_id() {
  return static_cast<int>(::syscall(SYS_gettid));
}

/// The handler: calls nothing that allocates or locks. The functions that it calls were called
/// before, so that the loader has nothing left to do.
void answer(int /*signal*/) {
  const int error = errno;
  const int self = own_id();
  for (Slot& slot : slots) {
    std::uint64_t key = key_of(self, Stage::asked);
    if (slot.key.load() == key &&
        slot.key.compare_exchange_strong(key, key_of(self, Stage::writing))) {
      slot.count = ::backtrace(slot.frames.data(), most_frames);
      slot.below = __builtin_return_address(0);
      slot.key = key_of(self, Stage::done);
      break;
    }
  }
  errno = error;
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

/// Empty for a thread that has ended.
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

/// A thread that a debugger has stopped answers only when it goes on. Some libraries have a thread
/// that takes no signals.
bool can_answer(const ThreadStack& thread) {
  return std::string_view("tTZX").find(thread.state) == std::string_view::npos &&
         !blocks_signal(thread.id);
}

/// Null where every slot is taken, or where the thread has ended.
Slot* ask(int thread) {
  const auto slot = std::ranges::find_if(
      slots, [](const Slot& candidate) { return stage_of(candidate.key) == Stage::free; });
  if (slot == slots.end()) {
    return nullptr;
  }
  slot->key = key_of(thread, Stage::asked);
  if (::syscall(SYS_tgkill, ::getpid(), thread, stack_signal()) != 0) {
    slot->key = key_of(0, Stage::free);
    return nullptr;
  }
  return &*slot;
}

/// Without the frames of the handler, and of what calls it.
void take_frames(const Slot& slot, FrameNames& names, ThreadStack& into) {
  const auto* const end = slot.frames.begin() + slot.count;
  const auto* const below = std::find(slot.frames.begin(), end, slot.below);
  const auto* const first = below == end ? slot.frames.begin() : below + 1;
  for (const auto* frame = first; frame != end; ++frame) {
    into.frames.push_back(names.of(*frame, frame != first));
  }
  into.answered = true;
}

/// The system knows where a thread stands that does not run, also one that a debugger holds.
void take_position(FrameNames& names, ThreadStack& into) {
  const std::string call = content(folder_of(into.id) / "syscall");
  const std::size_t last = call.rfind(" 0x");
  std::uintptr_t position = 0;
  if (last != std::string::npos) {
    std::from_chars(call.data() + last + 3, call.data() + call.size(), position, 16);
  }
  if (position != 0) {
    into.frames = {names.of(reinterpret_cast<void*>(position), /*call=*/false)};
  }
}

/// Forgets the answers of the last call, and the threads that did not answer it: a handler that
/// comes later finds that it is not asked. One that has begun keeps its slot until it is done.
void free_slots() {
  for (Slot& slot : slots) {
    std::uint64_t key = slot.key;
    if (stage_of(key) != Stage::writing) {
      slot.key.compare_exchange_strong(key, key_of(0, Stage::free));
    }
  }
}

using Asked = std::map<int, Slot*>;

Asked ask(const std::vector<ThreadStack>& threads) {
  Asked asked;
  if (!prepared) {
    return asked;
  }
  free_slots();
  for (const ThreadStack& thread : threads) {
    Slot* const slot = can_answer(thread) ? ask(thread.id) : nullptr;
    if (slot != nullptr) {
      asked.emplace(thread.id, slot);
    }
  }
  return asked;
}

/// Until all have answered, or until the limit.
void await(const Asked& asked, Duration limit) {
  constexpr auto glance = std::chrono::milliseconds(1);
  const auto is_missing = [](const auto& entry) {
    return stage_of(entry.second->key) != Stage::done;
  };
  for (Duration waited{}; waited < limit && std::ranges::any_of(asked, is_missing);
       waited += glance) {
    ::poll(nullptr, 0, static_cast<int>(glance.count()));
  }
}

Mutex& asking() {
  static Mutex mutex;
  return mutex;
}

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

void prepare_thread_stacks() {
  std::array<void*, 2> none{};
  ::backtrace(none.data(), static_cast<int>(none.size()));  // the first call loads a library
  struct sigaction action {};
  action.sa_handler = answer;
  action.sa_flags = SA_RESTART;
  ::sigaction(stack_signal(), &action, nullptr);
  prepared = true;
}

std::vector<ThreadStack> thread_stacks(Duration limit) {
  const MutexLock one_at_a_time(asking());
  std::vector<ThreadStack> stacks;
  for (const int thread : other_threads()) {
    if (auto found = look_at(thread)) {
      stacks.push_back(std::move(*found));
    }
  }
  const Asked asked = ask(stacks);
  await(asked, limit);
  FrameNames names;
  for (ThreadStack& stack : stacks) {
    const auto slot = asked.find(stack.id);
    if (slot != asked.end() && stage_of(slot->second->key) == Stage::done) {
      take_frames(*slot->second, names, stack);
    } else {
      take_position(names, stack);
    }
  }
  return stacks;
}

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
  if (!prepared) {
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
