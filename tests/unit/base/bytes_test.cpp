// Goal:   values have the same bytes on every machine, and a buffer that is too short is refused.
// Method: tables of values and the bytes that they must have; round trips; buffers cut short.

#include "base/bytes.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <vector>

#include "base/errors.hpp"

namespace syncopate {
namespace {

using Bytes = std::vector<std::byte>;

Bytes bytes_of(std::initializer_list<int> values) {
  Bytes bytes;
  for (const int value : values) {
    bytes.push_back(static_cast<std::byte>(value));
  }
  return bytes;
}

template <class Value>
struct Row {
  Value value;
  Bytes bytes;
};

template <class Value>
void expect_rows(const std::vector<Row<Value>>& rows) {
  for (const Row<Value>& row : rows) {
    Bytes packed(sizeof(Value));
    ByteWriter writer(packed);
    writer.put(row.value);
    EXPECT_EQ(packed, row.bytes) << row.value;
    EXPECT_EQ(writer.remaining(), 0U);
    ByteReader reader(row.bytes);
    EXPECT_EQ(reader.take<Value>(), row.value);
    EXPECT_EQ(reader.remaining(), 0U);
  }
}

TEST(Bytes, IntegersAreLittleEndian) {
  expect_rows<std::uint8_t>({{0, bytes_of({0})}, {255, bytes_of({255})}});
  expect_rows<std::uint16_t>({{0x0102, bytes_of({2, 1})}, {0xffff, bytes_of({255, 255})}});
  expect_rows<std::uint32_t>({{0x01020304, bytes_of({4, 3, 2, 1})}});
  expect_rows<std::uint64_t>({{1ULL << 40, bytes_of({0, 0, 0, 0, 0, 1, 0, 0})}});
  expect_rows<std::int64_t>({{-1, bytes_of({255, 255, 255, 255, 255, 255, 255, 255})},
                             {-256, bytes_of({0, 255, 255, 255, 255, 255, 255, 255})}});
}

TEST(Bytes, FloatsAreTheirBits) {
  expect_rows<float>({{1.0F, bytes_of({0, 0, 0x80, 0x3f})}, {-2.5F, bytes_of({0, 0, 0x20, 0xc0})}});
  expect_rows<double>(
      {{1.0, bytes_of({0, 0, 0, 0, 0, 0, 0xf0, 0x3f})},
       {std::numeric_limits<double>::infinity(), bytes_of({0, 0, 0, 0, 0, 0, 0xf0, 0x7f})}});
}

TEST(Bytes, ABoolIsOneByteAndTrueUnlessZero) {
  expect_rows<bool>({{false, bytes_of({0})}, {true, bytes_of({1})}});
  EXPECT_TRUE(ByteReader(bytes_of({2})).take<bool>());
}

TEST(Bytes, ValuesFollowEachOtherWithoutPadding) {
  Bytes packed(9, std::byte{0xaa});
  ByteWriter(packed)
      .put(std::uint8_t{1})
      .put(std::uint32_t{2})
      .put_zeros(1)
      .put_bytes(bytes_of({7, 8, 9}));
  EXPECT_EQ(packed, bytes_of({1, 2, 0, 0, 0, 0, 7, 8, 9}));
  ByteReader reader(packed);
  EXPECT_EQ(reader.take<std::uint8_t>(), 1);
  EXPECT_EQ(reader.take<std::uint32_t>(), 2U);
  reader.skip(1);
  EXPECT_EQ(reader.remaining(), 3U);
  const auto rest = reader.take_bytes(3);
  EXPECT_EQ(Bytes(rest.begin(), rest.end()), bytes_of({7, 8, 9}));
}

TEST(Bytes, ReadingPastTheEndIsAProtocolError) {
  const Bytes bytes(3);
  EXPECT_THROW(ByteReader(bytes).take<std::uint32_t>(), ProtocolError);
  EXPECT_THROW(ByteReader(bytes).skip(4), ProtocolError);
  EXPECT_THROW(ByteReader(bytes).take_bytes(std::numeric_limits<std::size_t>::max()),
               ProtocolError);
  ByteReader reader(bytes);
  EXPECT_EQ(reader.take<std::uint16_t>(), 0U);
  EXPECT_THROW(reader.take<std::uint16_t>(), ProtocolError);
  EXPECT_EQ(reader.remaining(), 1U);
}

TEST(Bytes, WritingPastTheEndIsABug) {
  Bytes bytes(3);
  EXPECT_THROW(ByteWriter(bytes).put(std::uint32_t{1}), InternalError);
  EXPECT_THROW(ByteWriter(bytes).put_zeros(4), InternalError);
  EXPECT_EQ(bytes, Bytes(3));
}

}  // namespace
}  // namespace syncopate
