#include "server/messages.hpp"
#include "tests/fuzz/targets.hpp"

namespace syncopate::fuzz {
/// A request to a shard of a parameter server or, by the first byte, its reply.
void fuzz_server_message(Input input) {
  if (take_byte(input) % 2 == 1) {
    require_read_back(input, decode_reply);
  } else {
    require_read_back(input, decode_request);
  }
}

}  // namespace syncopate::fuzz
