#include "base/interruption.hpp"

#include <utility>

namespace syncopate::interruption {
namespace {

std::function<bool()>& asked() {
  thread_local std::function<bool()> function;
  return function;
}

}  // namespace

void ask(std::function<bool()> requested) {
  asked() = std::move(requested);
}

bool is_asked() {
  return asked() != nullptr;
}

bool is_requested() {
  return asked() && asked()();
}

void throw_if_requested() {
  if (is_requested()) {
    throw Interrupted();
  }
}

}  // namespace syncopate::interruption
