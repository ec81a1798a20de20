#include "codec/codec_frame.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/fuzz/targets.hpp"

namespace syncopate::fuzz {

/// A compressed vector. The first byte chooses the codec, the next two the number of values.
void fuzz_codec_frame(Input input) {
  const auto specs = all_codecs();
  const CodecSpec* spec = specs[take_byte(input) % specs.size()];
  const auto codec = make_codec({.codec = spec, .parameter = spec->parameter ? 0.25 : 0.0});
  const std::size_t low = take_byte(input);
  const std::size_t values = low + 256 * take_byte(input);
  std::vector<double> aligned((input.size() + 7) / 8);
  const std::span frame = std::as_writable_bytes(std::span(aligned)).first(input.size());
  std::ranges::copy(bytes_of(input), frame.begin());
  std::vector<float> decoded(values);
  std::vector<float> added(values, 0.0F);
  std::vector<float> scratch(Codec::block_values);
  accept_or_refuse([&] {
    decode_frame(*codec, frame, decoded);
    add_frame(*codec, frame, added, scratch);
    const auto same = [](float left, float right) {
      return left == right || (std::isnan(left) && std::isnan(right));
    };
    require(std::ranges::equal(decoded, added, same),
            "added to zeros, a frame is what it decodes to");
  });
}

}  // namespace syncopate::fuzz
