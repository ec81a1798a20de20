// Goal:   values know their type, length and memory, and are given out as values of C++ only where
//         they are that.
// Method: one vector of every type; values of an accelerator, which nothing on the host may touch.

#include "kernels/values.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace syncopate {
namespace {

using testing::HasSubstr;

template <class Value>
class ValuesOf : public testing::Test {};

using Types = testing::Types<float, double, std::int32_t, std::int64_t, Bfloat16, Float16,
                             std::int8_t, std::uint8_t>;
TYPED_TEST_SUITE(ValuesOf, Types);

TYPED_TEST(ValuesOf, AreViewsOfTheMemory) {
  std::vector<TypeParam> memory(5);
  const Values values = memory;
  EXPECT_EQ(values.type(), type_of<TypeParam>);
  EXPECT_EQ(values.size(), 5U);
  EXPECT_EQ(values.size_bytes(), 5 * sizeof(TypeParam));
  EXPECT_EQ(values.as<TypeParam>().data(), memory.data());
  const Values part = values.subspan(2, 3);
  EXPECT_EQ(part.as<TypeParam>().data(), memory.data() + 2);
  EXPECT_EQ(part.bytes().size(), 3 * sizeof(TypeParam));
  with_typed(values, [&]<class Value>(std::span<Value> typed) {
    EXPECT_TRUE((std::is_same_v<Value, TypeParam>));
    EXPECT_EQ(typed.size(), 5U);
  });
}

template <class Use>
std::string refusal_of(const Use& use) {
  try {
    use();
  } catch (const InternalError& error) {
    return error.what();
  }
  return "";
}

TEST(Values, RefusesAnotherType) {
  std::vector<float> memory(3);
  const Values values = memory;
  EXPECT_THAT(refusal_of([&] { values.as<double>(); }), HasSubstr("float32"));
  EXPECT_TRUE(values.are_host_floats());
}

TEST(Values, OfAnAcceleratorAreNoneOfTheHost) {
  std::vector<float> memory(3);
  const Values values(memory.data(), ValueType::float32, 3,
                      {.kind = DeviceId::Kind::accelerator, .number = 1});
  EXPECT_FALSE(values.are_host_floats());
  EXPECT_THAT(refusal_of([&] { values.floats(); }), HasSubstr("an accelerator"));
  EXPECT_THAT(refusal_of([&] { values.bytes(); }), HasSubstr("an accelerator"));
  EXPECT_EQ(values.subspan(1, 2).device(), values.device());
}

TEST(Values, HaveNames) {
  EXPECT_EQ(name_of(ValueType::bfloat16), "bfloat16");
  EXPECT_EQ(name_of(ValueType::uint8), "uint8");
  EXPECT_EQ(bytes_of(ValueType::float64), 8U);
}

}  // namespace
}  // namespace syncopate
