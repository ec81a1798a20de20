#include "data/idx.hpp"

#include "tests/fuzz/targets.hpp"

namespace syncopate::fuzz {

/// An IDX file, as it is or by gzip, of labels or, by the first byte, of images.
void fuzz_idx(Input input) {
  const std::uint32_t dimensions = take_byte(input) % 2 == 1 ? 3 : 1;
  const InputFile file(input);
  accept_or_refuse([&] {
    const IdxArray array = read_idx(file.path(), dimensions);
    std::uint64_t values = 1;
    for (const std::uint32_t count : array.dimensions) {
      values *= count;
    }
    require(array.values.size() == values, "an array has as many values as its header counts");
    require(read_idx_header(file.path(), dimensions) == array.dimensions,
            "the header by itself is the same");
  });
}

}  // namespace syncopate::fuzz
