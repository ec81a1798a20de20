#include "report/events.hpp"
#include "tests/fuzz/targets.hpp"

namespace syncopate::fuzz {

/// A line of events.jsonl, or of a process that a supervisor has started.
void fuzz_event(Input input) {
  accept_or_refuse([&] { events::parse_event(text_of(input)); });
  accept_or_refuse([&] { events::end_in(text_of(input)); });
  accept_or_refuse([&] { events::left_in(text_of(input)); });
}

}  // namespace syncopate::fuzz
