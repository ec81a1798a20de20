#include "compression/codec.hpp"

#include "base/errors.hpp"
#include "compression/half_codecs.hpp"
#include "compression/int8_codec.hpp"
#include "compression/onebit_codec.hpp"
#include "compression/topk_codec.hpp"

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
