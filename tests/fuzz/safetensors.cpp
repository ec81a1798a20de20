#include "checkpoint/safetensors.hpp"

#include "checkpoint/worker_states.hpp"
#include "tests/fuzz/targets.hpp"

namespace syncopate::fuzz {

/// A safetensors file: a checkpoint or, in a message, the states of a worker.
void fuzz_safetensors(Input input) {
  accept_or_refuse([&] {
    const Safetensors file(std::string(text_of(input)), "model.safetensors");
    for (const std::string& name : file.names()) {
      std::size_t values = 1;
      for (const std::int64_t side : file.shape(name)) {
        values *= static_cast<std::size_t>(side);
      }
      require(file.values(name).size() == values, "a tensor has the values of its shape");
    }
  });
  accept_or_refuse([&] { decode_states(bytes_of(input)); });
}

}  // namespace syncopate::fuzz
