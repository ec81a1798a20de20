// Goal:   control messages arrive unchanged, and damage causes a ProtocolError and nothing worse.
// Method: each body with every field set, including fields that the protocol gets later, is
//         encoded, decoded and compared by protobuf; empty and foreign bytes are refused; good
//         messages get random damage from a seed.

#include "wire/control.hpp"

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/util/message_differencer.h>

#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "base/errors.hpp"
#include "tests/unit/wire/damage.hpp"

namespace syncopate::wire {
namespace {

using google::protobuf::util::MessageDifferencer;

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

void fill(Message& message, int& next);

/// Gives `field` one value that no other field has.
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
      return repeated ? reflection.AddUInt64(&message, &field, (std::uint64_t{1} << 40) + value)
                      : reflection.SetUInt64(&message, &field, (std::uint64_t{1} << 40) + value);
    case FieldDescriptor::CPPTYPE_INT64:
      return reflection.SetInt64(&message, &field, (std::int64_t{1} << 41) + value);
    case FieldDescriptor::CPPTYPE_INT32: return reflection.SetInt32(&message, &field, value);
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

/// The definitions of control.proto, read with protobuf's compiler: the classes in the library
/// have no reflection.
class Definitions {
 public:
  Definitions() {
    std::ifstream file(CONTROL_DEFINITIONS, std::ios::binary);
    google::protobuf::FileDescriptorSet files;
    EXPECT_TRUE(files.ParseFromIstream(&file)) << CONTROL_DEFINITIONS;
    for (const auto& definition : files.file()) {
      pool_.BuildFile(definition);
    }
  }

  std::unique_ptr<Message> make(const std::string& name) {
    const Descriptor* const found = pool_.FindMessageTypeByName("syncopate.wire." + name);
    return std::unique_ptr<Message>(factory_.GetPrototype(found)->New());
  }

 private:
  google::protobuf::DescriptorPool pool_;
  google::protobuf::DynamicMessageFactory factory_;
};

Definitions& definitions() {
  static Definitions read;
  return read;
}

/// Returns one message of each body, with every field set.
std::vector<std::unique_ptr<Message>> one_of_each(const std::string& name) {
  std::vector<std::unique_ptr<Message>> messages;
  int next = 0;
  const int bodies = definitions().make(name)->GetDescriptor()->field_count();
  for (int index = 0; index < bodies; ++index) {
    Message& message = *messages.emplace_back(definitions().make(name));
    fill_field(message, *message.GetDescriptor()->field(index), next);
  }
  return messages;
}

template <class Control>
Control as(const Message& message) {
  Control control;
  EXPECT_TRUE(control.ParseFromString(message.SerializeAsString()));
  return control;
}

void expect_same(const std::string& name, const google::protobuf::MessageLite& received,
                 const Message& sent) {
  const auto again = definitions().make(name);
  ASSERT_TRUE(again->ParseFromString(received.SerializeAsString()));
  EXPECT_TRUE(MessageDifferencer::Equals(*again, sent)) << sent.DebugString();
}

TEST(Control, EachMessageToTheCoordinatorArrivesAsItWas) {
  for (const auto& message : one_of_each("ToCoordinator")) {
    const auto received = decode_to_coordinator(encode(as<ToCoordinator>(*message)));
    expect_same("ToCoordinator", received, *message);
  }
}

TEST(Control, EachMessageFromTheCoordinatorArrivesAsItWas) {
  for (const auto& message : one_of_each("FromCoordinator")) {
    const auto received = decode_from_coordinator(encode(as<FromCoordinator>(*message)));
    expect_same("FromCoordinator", received, *message);
  }
}

TEST(Control, RefusesAMessageWithoutABody) {
  EXPECT_THROW(decode_to_coordinator({}), ProtocolError);
  EXPECT_THROW(decode_from_coordinator({}), ProtocolError);
}

TEST(Control, RefusesABodyOfALaterVersion) {
  // Field 2047, of length 1; protobuf by itself would ignore it.
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
  for (const auto& message : one_of_each("ToCoordinator")) {
    expect_survives_damage(encode(as<ToCoordinator>(*message)), decode_to_coordinator, 82, 500);
  }
  for (const auto& message : one_of_each("FromCoordinator")) {
    expect_survives_damage(encode(as<FromCoordinator>(*message)), decode_from_coordinator, 83, 500);
  }
}

}  // namespace
}  // namespace syncopate::wire
