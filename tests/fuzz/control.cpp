#include "wire/control.hpp"

#include "tests/fuzz/targets.hpp"

namespace syncopate::fuzz {
/// A message to the coordinator or, by the first byte, from it.
void fuzz_control(Input input) {
  if (take_byte(input) % 2 == 1) {
    require_read_back(input, wire::decode_from_coordinator);
  } else {
    require_read_back(input, wire::decode_to_coordinator);
  }
}

}  // namespace syncopate::fuzz
