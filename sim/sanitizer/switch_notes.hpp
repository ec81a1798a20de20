#pragma once

#include <cstddef>

namespace syncopate::sim {

/// Tells a sanitizer of each change between one fiber's stack and the stack that resumes it.
///
/// The build links one of three implementations: for AddressSanitizer, for ThreadSanitizer, or one
/// that does nothing. The four calls of a round trip come in the order of their declarations.
class SwitchNotes {
 public:
  SwitchNotes();
  ~SwitchNotes();  // NOLINT(performance-trivially-destructible): two of the three do something
  SwitchNotes(const SwitchNotes&) = delete;
  SwitchNotes& operator=(const SwitchNotes&) = delete;

  /// On the outer stack, before the fiber's, which begins at `bottom`, is entered.
  void entering(const void* bottom, std::size_t size);
  /// On the fiber's stack, as the first thing.
  void entered();
  /// On the fiber's stack, as the last thing; `for_good` when the fiber ends.
  void leaving(bool for_good);
  /// On the outer stack, as the first thing.
  void left();

 private:
  // Not every implementation uses all of them.
  [[maybe_unused]] void* inner_ = nullptr;  ///< what the sanitizer knows of the fiber
  [[maybe_unused]] void* outer_ = nullptr;  ///< and of the stack that resumes it
  [[maybe_unused]] const void* outer_bottom_ = nullptr;
  [[maybe_unused]] std::size_t outer_size_ = 0;
};

}  // namespace syncopate::sim
