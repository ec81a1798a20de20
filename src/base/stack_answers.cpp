#include "base/stack_answers.hpp"

#include <execinfo.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>

namespace syncopate {
namespace {

constexpr std::size_t most_threads = 256;
constexpr std::size_t most_frames = 64;

enum class Stage : std::uint64_t { free, asked, writing, done };

/// An answer. Its key is the thread's id and a stage in one word, so that a late handler cannot
/// write into a slot that another thread has by then.
struct Slot {
  std::atomic<std::uint64_t> key{0};
  int count = 0;
  void* below = nullptr;  ///< the address to which the handler returns
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

/// The handler: calls nothing that allocates or locks. The functions that it calls were called
/// before, so that the loader has nothing left to do.
void answer(int /*signal*/) {
  const int error = errno;
  const auto self = static_cast<int>(::syscall(SYS_gettid));
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

/// Asks a thread for its stack. Null if every slot is taken, or the thread has ended.
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

/// The frames of an answer, without those of the handler and of the function that calls it.
std::vector<void*> frames_of(const Slot& slot) {
  const auto* const end = slot.frames.begin() + slot.count;
  const auto* const below = std::find(slot.frames.begin(), end, slot.below);
  return {below == end ? slot.frames.begin() : below + 1, end};
}

/// Forgets the answers of the last call, and the threads that did not answer it: a handler that
/// runs later finds that its thread is not asked. A handler that has begun keeps its slot until it
/// is done.
void free_slots() {
  for (Slot& slot : slots) {
    std::uint64_t key = slot.key;
    if (stage_of(key) != Stage::writing) {
      slot.key.compare_exchange_strong(key, key_of(0, Stage::free));
    }
  }
}

using Asked = std::map<int, const Slot*>;

bool is_done(const Asked::value_type& asked) {
  return stage_of(asked.second->key) == Stage::done;
}

/// Waits until all have answered, or until the limit.
void await(const Asked& asked, Duration limit) {
  constexpr auto glance = std::chrono::milliseconds(1);
  for (Duration waited{}; waited < limit && !std::ranges::all_of(asked, is_done);
       waited += glance) {
    ::poll(nullptr, 0, static_cast<int>(glance.count()));
  }
}

}  // namespace

int stack_signal() {
  return SIGRTMIN + 3;
}

void prepare_stack_answers() {
  std::array<void*, 2> none{};
  ::backtrace(none.data(), static_cast<int>(none.size()));  // the first call loads a library
  struct sigaction action {};
  action.sa_handler = answer;
  action.sa_flags = SA_RESTART;
  ::sigaction(stack_signal(), &action, nullptr);
  prepared = true;
}

bool can_ask_for_stacks() {
  return prepared;
}

StackAnswers ask_for_stacks(std::span<const int> threads, Duration limit) {
  StackAnswers answers;
  if (!prepared) {
    return answers;
  }
  free_slots();
  Asked asked;
  for (const int thread : threads) {
    if (const Slot* const slot = ask(thread)) {
      asked.emplace(thread, slot);
    }
  }
  await(asked, limit);
  for (const auto& one : asked) {
    if (is_done(one)) {
      answers.emplace(one.first, frames_of(*one.second));
    }
  }
  return answers;
}

}  // namespace syncopate
