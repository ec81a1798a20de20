#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>

#include "sim/sanitizer/switch_notes.hpp"

namespace syncopate::sim {

SwitchNotes::SwitchNotes() = default;
SwitchNotes::~SwitchNotes() = default;

void SwitchNotes::entering(const void* bottom, std::size_t size) {
  const bool is_first = outer_bottom_ == nullptr;
  if (is_first) {
    // An earlier fiber on this stack, whose last frames never returned, left its poison behind.
    __asan_unpoison_memory_region(bottom, size);
  }
  __sanitizer_start_switch_fiber(&outer_, bottom, size);
}

void SwitchNotes::entered() {
  __sanitizer_finish_switch_fiber(inner_, &outer_bottom_, &outer_size_);
}

void SwitchNotes::leaving(bool for_good) {
  __sanitizer_start_switch_fiber(for_good ? nullptr : &inner_, outer_bottom_, outer_size_);
}

void SwitchNotes::left() {
  __sanitizer_finish_switch_fiber(outer_, nullptr, nullptr);
}

}  // namespace syncopate::sim
