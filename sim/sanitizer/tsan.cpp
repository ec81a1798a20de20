#include <sanitizer/tsan_interface.h>

#include "sim/sanitizer/switch_notes.hpp"

namespace syncopate::sim {

SwitchNotes::SwitchNotes() : inner_(__tsan_create_fiber(0)) {}

SwitchNotes::~SwitchNotes() {
  __tsan_destroy_fiber(inner_);
}

void SwitchNotes::entering(const void* /*bottom*/, std::size_t /*size*/) {
  outer_ = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(inner_, 0);
}

void SwitchNotes::entered() {}

void SwitchNotes::leaving(bool /*for_good*/) {
  __tsan_switch_to_fiber(outer_, 0);
}

void SwitchNotes::left() {}

}  // namespace syncopate::sim
