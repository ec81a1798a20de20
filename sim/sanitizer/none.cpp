#include "sim/sanitizer/switch_notes.hpp"

namespace syncopate::sim {

SwitchNotes::SwitchNotes() = default;
SwitchNotes::~SwitchNotes() = default;

void SwitchNotes::entering(const void* /*bottom*/, std::size_t /*size*/) {}

void SwitchNotes::entered() {}

void SwitchNotes::leaving(bool /*for_good*/) {}

void SwitchNotes::left() {}

}  // namespace syncopate::sim
