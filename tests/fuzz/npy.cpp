#include "data/npy.hpp"

#include "tests/fuzz/targets.hpp"

namespace syncopate::fuzz {

/// A NumPy array file.
void fuzz_npy(Input input) {
  const InputFile file(input);
  accept_or_refuse([&] { read_npy_header("array.npy", text_of(input)).type_name(); });
  accept_or_refuse([&] {
    const NpyArray array = read_npy(file.path());
    std::uint64_t bytes = array.header.item_bytes;
    for (const std::uint64_t count : array.header.shape) {
      bytes *= count;
    }
    require(array.values.size() == bytes, "an array has as many values as its header counts");
  });
}

}  // namespace syncopate::fuzz
