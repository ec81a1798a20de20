// Goal:   the frames of the handshake arrive unchanged; the reader of a refusal gets an error;
//         damage causes a ProtocolError.
// Method: each message passes through a whole frame, which the test splits as a reader does; then
//         wrong kinds and random damage from a seed.

#include <gmock/gmock.h>

#include "base/errors.hpp"
#include "tests/unit/wire/damage.hpp"
#include "wire/wire_frame.hpp"

namespace syncopate::wire {
namespace {

using Bytes = std::vector<std::byte>;

FrameHeader header_of(const Bytes& frame) {
  return decode_frame_header(std::span(frame).first<frame_header_bytes>(), handshake_limit);
}

Bytes payload_of(const Bytes& frame) {
  return {frame.begin() + frame_header_bytes, frame.end()};
}

Hello hello() {
  Hello message;
  message.set_token(std::string("\x00\xff a secret", 11));
  message.set_address("127.0.0.1:4411");
  message.set_node(3);
  return message;
}

TEST(Handshake, HelloArrivesAsItWas) {
  const Bytes frame = encode_frame(hello());
  EXPECT_EQ(header_of(frame), (FrameHeader{FrameKind::hello, 0, frame.size() - 24}));
  const Hello received = decode_hello(FrameKind::hello, payload_of(frame));
  EXPECT_EQ(received.token(), hello().token());
  EXPECT_EQ(received.address(), "127.0.0.1:4411");
  EXPECT_EQ(received.node(), 3);
}

TEST(Handshake, AHelloWithoutANumberIsNotOneOfNodeZero) {
  Hello message = hello();
  message.clear_node();
  EXPECT_FALSE(decode_hello(FrameKind::hello, payload_of(encode_frame(message))).has_node());
  message.set_node(0);
  EXPECT_TRUE(decode_hello(FrameKind::hello, payload_of(encode_frame(message))).has_node());
}

TEST(Handshake, AProbeIsNoHello) {
  const Bytes frame = probe_frame();
  ASSERT_EQ(frame.size(), 24 + probe_bytes);
  EXPECT_EQ(decode_frame_header(std::span(frame).first<24>(), probe_bytes),
            (FrameHeader{FrameKind::probe, 0, probe_bytes}));
  EXPECT_THROW(decode_hello(FrameKind::probe, payload_of(frame)), ProtocolError);
}

TEST(Handshake, WelcomeArrivesAsItWas) {
  Welcome message;
  message.set_node(2);
  message.set_you(5);
  const Bytes frame = encode_frame(message);
  const Welcome received = decode_answer(header_of(frame).kind, payload_of(frame));
  EXPECT_EQ(received.node(), 2);
  EXPECT_EQ(received.you(), 5);
}

std::string message_of_refusal(const std::string& reason) {
  Refused message;
  message.set_reason(reason);
  const Bytes frame = encode_frame(message);
  try {
    decode_answer(header_of(frame).kind, payload_of(frame));
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "a refusal was taken for a welcome";
}

TEST(Handshake, ARefusalIsThrownWithItsReason) {
  EXPECT_EQ(message_of_refusal("the job token is wrong"), "the job token is wrong");
}

TEST(Handshake, AReasonCannotWriteToATerminal) {
  EXPECT_EQ(message_of_refusal("two\nlines\x1b[2J"), "two lines?[2J");
  EXPECT_THAT(message_of_refusal(""), testing::HasSubstr("without a reason"));
}

TEST(Handshake, OtherKindsAreRefused) {
  EXPECT_THROW(decode_hello(FrameKind::message, {}), ProtocolError);
  EXPECT_THROW(decode_answer(FrameKind::hello, {}), ProtocolError);
  EXPECT_THROW(decode_answer(FrameKind::message, {}), ProtocolError);
}

TEST(Handshake, SurvivesDamage) {
  const auto decode = [](std::span<const std::byte> bytes) {
    decode_hello(FrameKind::hello, bytes);
  };
  expect_survives_damage(payload_of(encode_frame(hello())), decode, 84, 2'000);
}

}  // namespace
}  // namespace syncopate::wire
