// Goal:   a frame's header has the documented bytes, and no other bytes are accepted as a header.
// Method: one header written byte by byte; damage to each field, with the text of the error
//         compared; then random damage from a seed, which must give a value or a ProtocolError.

#include <gmock/gmock.h>

#include <string>

#include "base/errors.hpp"
#include "base/random.hpp"
#include "wire/wire_frame.hpp"

namespace syncopate::wire {
namespace {

constexpr std::uint64_t limit = 1'000'000;

std::string refusal(const FrameHeaderBytes& bytes) {
  try {
    decode_frame_header(bytes, limit);
  } catch (const ProtocolError& error) {
    return error.what();
  }
  return "";
}

FrameHeaderBytes with_byte(std::size_t offset, unsigned value) {
  FrameHeaderBytes bytes = encode(FrameHeader{FrameKind::message, 7, 10});
  bytes.at(offset) = static_cast<std::byte>(value);
  return bytes;
}

TEST(Frame, HasTheDocumentedLittleEndianBytes) {
  const FrameHeaderBytes bytes =
      encode(FrameHeader{FrameKind::message, 0x01020304, 0x1112131415161718});
  const unsigned expected[] = {'S', 'Y', 'N', 'C', 3,    0,    4,    0,    4,    3,    2,    1,
                               0,   0,   0,   0,   0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11};
  for (std::size_t offset = 0; offset < bytes.size(); ++offset) {
    EXPECT_EQ(std::to_integer<unsigned>(bytes[offset]), expected[offset]) << "offset " << offset;
  }
}

TEST(Frame, DecodesWhatItEncodes) {
  for (const FrameKind kind : {FrameKind::hello, FrameKind::welcome, FrameKind::refused,
                               FrameKind::message, FrameKind::probe}) {
    for (const std::uint64_t length : {std::uint64_t{0}, std::uint64_t{1}, limit}) {
      const FrameHeader header{kind, 0xfffffffe, length};
      EXPECT_EQ(decode_frame_header(encode(header), limit), header);
    }
  }
}

TEST(Frame, RefusesAnotherMagicByItsValue) {
  EXPECT_THAT(refusal(with_byte(0, 'X')),
              testing::AllOf(testing::HasSubstr("expected a Syncopate frame (magic 0x434e5953)"),
                             testing::HasSubstr("found 0x434e5958")));
}

TEST(Frame, RefusesAnotherVersionByItsNumber) {
  EXPECT_THAT(refusal(with_byte(4, 2)), testing::HasSubstr("expected protocol version 3, found 2"));
}

TEST(Frame, RefusesUnknownKinds) {
  EXPECT_THAT(refusal(with_byte(6, 0)), testing::HasSubstr("found 0"));
  EXPECT_THAT(refusal(with_byte(6, 6)), testing::HasSubstr("found 6"));
  EXPECT_THAT(refusal(with_byte(7, 1)), testing::HasSubstr("found 260"));
}

TEST(Frame, RefusesAReservedFieldInUse) {
  EXPECT_THAT(refusal(with_byte(13, 1)), testing::HasSubstr("found 0x00000100"));
}

TEST(Frame, RefusesMoreThanTheLimit) {
  const FrameHeaderBytes bytes = encode(FrameHeader{FrameKind::message, 7, limit + 1});
  EXPECT_THAT(refusal(bytes),
              testing::HasSubstr("expected a payload of at most 1000000 bytes, found 1000001"));
}

TEST(Frame, RandomBytesAreAValueOrAProtocolError) {
  constexpr std::uint64_t seed = 81;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  Random random(seed);
  int refused = 0;
  for (int round = 0; round < 20'000; ++round) {
    // A good header, damaged in up to three bytes.
    FrameHeaderBytes bytes = encode(FrameHeader{FrameKind::message, 7, random.below(limit)});
    for (std::uint64_t hit = random.below(4); hit > 0; --hit) {
      bytes.at(random.below(bytes.size())) = static_cast<std::byte>(random.bits());
    }
    try {
      const FrameHeader header = decode_frame_header(bytes, limit);
      EXPECT_LE(header.length, limit);
      EXPECT_EQ(encode(header), bytes) << "what is read is all that was there";
    } catch (const ProtocolError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 5'000);
}

}  // namespace
}  // namespace syncopate::wire
