#pragma once

#include <cstddef>

namespace syncopate::sim {

/// Notifies a sanitizer of each change between one fiber's stack and the stack that resumes it.
///
/// The build links one of three implementations: for AddressSanitizer, for ThreadSanitizer, or one
/// that does nothing. The four calls of a round trip come in the order of their declarations.
class SwitchNotes {
 public:
  SwitchNotes();
  ~SwitchNotes();  // NOLINT(performance-trivially-destructible): two of the three do something
  SwitchNotes(const SwitchNotes&) = delete;
  SwitchNotes& operator=(const SwitchNotes&) = delete;

  /// Called on the outer stack, before the switch to the fiber's stack, which begins at `bottom`.
  void entering(const void* bottom, std::size_t size);
  /// Called first on the fiber's stack, after the switch.
  void entered();
  /// Called last on the fiber's stack, before the switch back; `for_good` if the fiber ends.
  void leaving(bool for_good);
  /// Called first on the outer stack, after the switch back.
  void left();

 private:
  // Not every implementation uses all of them.
  [[maybe_unused]] void* inner_ = nullptr;  ///< the sanitizer's state of the fiber
  [[maybe_unused]] void* outer_ = nullptr;  ///< its state of the stack that resumes it
  [[maybe_unused]] const void* outer_bottom_ = nullptr;
  [[maybe_unused]] std::size_t outer_size_ = 0;
};

}  // namespace syncopate::sim
