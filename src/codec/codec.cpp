#include "codec/codec.hpp"

#include "base/errors.hpp"
#include "codec/half_codecs.hpp"
#include "codec/int8_codec.hpp"
#include "codec/onebit_codec.hpp"
#include "codec/topk_codec.hpp"

namespace syncopate {

std::unique_ptr<Codec> make_codec(const Compression& compression) {
  switch (compression.kind) {
    case Compression::Kind::bf16: return std::make_unique<Bf16Codec>();
    case Compression::Kind::fp16: return std::make_unique<Fp16Codec>();
    case Compression::Kind::int8: return std::make_unique<Int8Codec>();
    case Compression::Kind::onebit: return std::make_unique<OnebitCodec>();
    case Compression::Kind::topk: return std::make_unique<TopkCodec>(compression.ratio);
    case Compression::Kind::none: break;
  }
  throw InternalError("a codec was asked for where nothing is compressed");
}

}  // namespace syncopate
