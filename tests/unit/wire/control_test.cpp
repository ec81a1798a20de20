// Goal:   control messages arrive as they were sent, and damage ends in a ProtocolError, no worse.
// Method: each body with every field set, including fields that the protocol gets later, passes
//         through bytes and is compared as protobuf compares it; empty and foreign bytes are
//         refused; a seed damages good messages at random.

#include "wire/control.hpp"

#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/errors.hpp"
#include "tests/unit/wire/damage.hpp"

namespace syncopate::wire {
namespace {

using google::protobuf::util::MessageDifferencer;

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

void fill(Message& message, int& next);

/// Gives `field`, once, a value that no other field has.
void fill_field(Message& message, const FieldDescriptor& field, int& next) {
  const Reflection& reflection = *message.GetReflection();
  const bool repeated = field.is_repeated();
  const int value = ++next;
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_MESSAGE:
      fill(repeated ? *reflection.AddMessage(&message, &field)
                    : *reflection.MutableMessage(&message, &field),
           next);
      return;
    case FieldDescriptor::CPPTYPE_STRING:
      return reflection.SetString(&message, &field, "text " + std::to_string(value));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return repeated ? reflection.AddDouble(&message, &field, 0.5 + value)
                      : reflection.SetDouble(&message, &field, 0.5 + value);
    case FieldDescriptor::CPPTYPE_BOOL: return reflection.SetBool(&message, &field, true);
    case FieldDescriptor::CPPTYPE_ENUM: return reflection.SetEnumValue(&message, &field, 1);
    case FieldDescriptor::CPPTYPE_UINT64:
      return reflection.SetUInt64(&message, &field, (std::uint64_t{1} << 40) + value);
    case FieldDescriptor::CPPTYPE_INT64:
      return reflection.SetInt64(&message, &field, (std::int64_t{1} << 41) + value);
    case FieldDescriptor::CPPTYPE_UINT32:
      return repeated ? reflection.AddUInt32(&message, &field, value)
                      : reflection.SetUInt32(&message, &field, value);
    default: FAIL() << "teach this test the type of " << field.full_name();
  }
}

void fill(Message& message, int& next) {
  for (int index = 0; index < message.GetDescriptor()->field_count(); ++index) {
    fill_field(message, *message.GetDescriptor()->field(index), next);
  }
}

/// One message of each body, every field set.
template <class Control>
std::vector<Control> one_of_each() {
  std::vector<Control> messages;
  int next = 0;
  for (int index = 0; index < Control::descriptor()->field_count(); ++index) {
    fill_field(messages.emplace_back(), *Control::descriptor()->field(index), next);
  }
  return messages;
}

TEST(Control, EachMessageToTheCoordinatorArrivesAsItWas) {
  for (const ToCoordinator& message : one_of_each<ToCoordinator>()) {
    const ToCoordinator received = decode_to_coordinator(encode(message));
    EXPECT_TRUE(MessageDifferencer::Equals(received, message)) << message.DebugString();
  }
}

TEST(Control, EachMessageFromTheCoordinatorArrivesAsItWas) {
  for (const FromCoordinator& message : one_of_each<FromCoordinator>()) {
    const FromCoordinator received = decode_from_coordinator(encode(message));
    EXPECT_TRUE(MessageDifferencer::Equals(received, message)) << message.DebugString();
  }
}

TEST(Control, RefusesAMessageWithoutABody) {
  EXPECT_THROW(decode_to_coordinator({}), ProtocolError);
  EXPECT_THROW(decode_from_coordinator({}), ProtocolError);
}

TEST(Control, RefusesABodyOfALaterVersion) {
  // Field 2047, of length 1, which protobuf alone would ignore.
  const std::vector<std::byte> later{std::byte{0xfa}, std::byte{0x7f}, std::byte{1}, std::byte{0}};
  EXPECT_THROW(decode_to_coordinator(later), ProtocolError);
  EXPECT_THROW(decode_from_coordinator(later), ProtocolError);
}

TEST(Control, SaysWhatWasExpectedOfDamagedBytes) {
  const std::vector<std::byte> damaged{std::byte{0x0a}, std::byte{100}, std::byte{1}};
  try {
    decode_to_coordinator(damaged);
    ADD_FAILURE() << "damaged bytes were read";
  } catch (const ProtocolError& error) {
    EXPECT_STREQ(error.what(), "expected a syncopate.wire.ToCoordinator, found 3 damaged bytes");
  }
}

TEST(Control, SurvivesDamage) {
  for (const ToCoordinator& message : one_of_each<ToCoordinator>()) {
    expect_survives_damage(encode(message), decode_to_coordinator, 82, 500);
  }
  for (const FromCoordinator& message : one_of_each<FromCoordinator>()) {
    expect_survives_damage(encode(message), decode_from_coordinator, 83, 500);
  }
}

}  // namespace
}  // namespace syncopate::wire
