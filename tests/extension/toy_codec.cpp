// A codec as an extension adds it: this file, and its line in codec/codecs.inc.

#include <bit>
#include <cstring>

#include "codec/codec.hpp"

namespace syncopate {

const CodecSpec& toy_codec();

namespace {

/// Sends the upper half of each float32, without rounding.
class ToyCodec final : public Codec {
 public:
  const CodecSpec& spec() const override { return toy_codec(); }
  std::size_t block_bytes(std::size_t values) const override {
    return values * sizeof(std::uint16_t);
  }

  void encode(std::span<const float> block, std::span<std::byte> into) override {
    for (std::size_t i = 0; i < block.size(); ++i) {
      const auto half = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(block[i]) >> 16);
      std::memcpy(into.data() + i * sizeof(half), &half, sizeof(half));
    }
  }

  void decode(std::span<const std::byte> from, std::span<float> block) const override {
    for (std::size_t i = 0; i < block.size(); ++i) {
      std::uint16_t half = 0;
      std::memcpy(&half, from.data() + i * sizeof(half), sizeof(half));
      block[i] = std::bit_cast<float>(std::uint32_t{half} << 16);
    }
  }
};

}  // namespace

const CodecSpec& toy_codec() {
  static const CodecSpec spec{
      .name = "toy", .number = 200, .make = [](double) -> std::unique_ptr<Codec> {
        return std::make_unique<ToyCodec>();
      }};
  return spec;
}

}  // namespace syncopate
