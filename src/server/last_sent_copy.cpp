#include "server/last_sent_copy.hpp"

#include <algorithm>

#include "codec/codec_frame.hpp"
#include "kernels/optimizer_steps.hpp"

namespace syncopate {

std::span<const std::byte> LastSentCopy::encode(Codec& codec, std::span<float> values) {
  difference_.assign(values.begin(), values.end());
  add_scaled(difference_, -1, values_);
  frame_.resize(frame_bytes(codec, values.size()));
  encode_frame(codec, difference_, frame_);
  decode(codec, values);
  return frame_;
}

std::span<std::byte> LastSentCopy::frame_buffer(const Codec& codec) {
  frame_.resize(frame_bytes(codec, values_.size()));
  return frame_;
}

void LastSentCopy::decode(const Codec& codec, std::span<float> into) {
  scratch_.resize(Codec::block_values);
  add_frame(codec, frame_, values_, scratch_);
  std::copy(values_.begin(), values_.end(), into.begin());
}

}  // namespace syncopate
