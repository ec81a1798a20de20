#pragma once

#include <map>
#include <span>
#include <vector>

#include "base/time.hpp"

namespace syncopate {

/// The return addresses of a thread, by thread: the innermost first, without those of the handler.
using StackAnswers = std::map<int, std::vector<void*>>;

/// Installs the handler by which the threads of this process answer.
void prepare_stack_answers();

/// True if `prepare_stack_answers` has been called.
bool can_ask_for_stacks();

/// The signal that asks a thread.
int stack_signal();

/// Asks these threads of this process, and waits until all have answered, or for `limit`. Without
/// `prepare_stack_answers` none answers.
/// Thread: one at a time.
StackAnswers ask_for_stacks(std::span<const int> threads, Duration limit);

}  // namespace syncopate
