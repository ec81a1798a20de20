#include "sim/fiber.hpp"

#include <cxxabi.h>

#include <boost/context/fiber.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>
#include <cstring>
#include <utility>

#include "sim/sanitizer/switch_notes.hpp"

namespace syncopate::sim {
namespace {

namespace context = boost::context;

/// The exceptions that a thread is handling and those in flight: `__cxa_eh_globals` of the Itanium
/// C++ ABI, section 2.2.2, whose layout is fixed there but declared in no header.
struct ExceptionState {
  void* caught = nullptr;
  unsigned int uncaught = 0;
};

/// Gives the thread another state of exceptions; returns the one it had.
ExceptionState exchange_exceptions(const ExceptionState& next) {
  void* const globals = abi::__cxa_get_globals();
  ExceptionState previous;
  std::memcpy(&previous, globals, sizeof previous);
  std::memcpy(globals, &next, sizeof next);
  return previous;
}

}  // namespace

struct Fiber::State {
  State(std::size_t bytes, std::function<void()> function)
      : stack_bytes(bytes), body(std::move(function)) {}

  void allocate();
  context::fiber run(context::fiber&& resumer);

  std::size_t stack_bytes;
  std::function<void()> body;
  context::fiber inside;   ///< the continuation of the body, while the fiber is paused
  context::fiber outside;  ///< the continuation of the caller, while the fiber runs
  context::stack_context stack;
  ExceptionState exceptions;  ///< of the fiber while it is paused
  SwitchNotes notes;
  bool ended = false;
};

void Fiber::State::allocate() {
  context::protected_fixedsize_stack allocator(stack_bytes);
  stack = allocator.allocate();
  inside = context::fiber(std::allocator_arg, context::preallocated(stack.sp, stack.size, stack),
                          allocator,
                          [this](context::fiber&& resumer) { return run(std::move(resumer)); });
}

context::fiber Fiber::State::run(context::fiber&& resumer) {
  notes.entered();
  outside = std::move(resumer);
  body();
  body = nullptr;  // destroyed here, because destructors may pause, too
  ended = true;
  notes.leaving(true);
  return std::move(outside);
}

Fiber::Fiber(std::size_t stack_bytes, std::function<void()> body)
    : state_(std::make_unique<State>(stack_bytes, std::move(body))) {}

Fiber::~Fiber() = default;

void Fiber::resume() {
  State& state = *state_;
  if (state.stack.sp == nullptr) {
    state.allocate();
  }
  const auto* const bottom = static_cast<const std::byte*>(state.stack.sp) - state.stack.size;
  const ExceptionState resumers = exchange_exceptions(state.exceptions);
  state.notes.entering(bottom, state.stack.size);
  state.inside = std::move(state.inside).resume();
  state.notes.left();
  state.exceptions = exchange_exceptions(resumers);
}

void Fiber::pause() {
  State& state = *state_;
  state.notes.leaving(false);
  state.outside = std::move(state.outside).resume();
  state.notes.entered();
}

bool Fiber::ended() const {
  return state_->ended;
}

}  // namespace syncopate::sim
