// Goal: whole IDX files are read exactly, and every kind of damage is refused with one line that
//       names the file, what was expected, what was found and what to do.
// Method: the test writes small files, damages them in one way each, and compares messages; it
//         reads random arrays back, plain and gzipped.

#include "data/idx.hpp"

#include <gmock/gmock.h>

#include "base/errors.hpp"
#include "base/random.hpp"
#include "tests/unit/data/idx_files.hpp"

namespace syncopate {
namespace {

using test::idx_bytes;
using test::images_magic;
using test::labels_magic;
using testing::HasSubstr;

TEST(Idx, ReadsWhatWasWritten) {
  const std::uint64_t seed = 20260111;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  Random random(seed);
  const test::ScratchFolder folder;
  for (int round = 0; round < 50; ++round) {
    std::vector<std::uint32_t> dimensions;
    for (int dimension = 0; dimension < 3; ++dimension) {
      dimensions.push_back(static_cast<std::uint32_t>(1 + random.below(20)));
    }
    std::vector<std::uint8_t> values(std::size_t{dimensions[0]} * dimensions[1] * dimensions[2]);
    for (auto& value : values) {
      value = static_cast<std::uint8_t>(random.below(256));
    }
    const std::string bytes = idx_bytes(images_magic, dimensions, values);
    test::write_plain(folder / "plain", bytes);
    test::write_gzip(folder / "packed.gz", bytes);
    for (const char* name : {"plain", "packed.gz"}) {
      const IdxArray array = read_idx(folder / name, 3);
      EXPECT_EQ(array.dimensions, dimensions);
      EXPECT_EQ(array.values, values);
    }
  }
}

TEST(Idx, ReadsBeyondTheFirstChunk) {
  // 70 MiB, more than the reader takes from a file at once.
  const std::uint32_t count = 70U << 20U;
  std::vector<std::uint8_t> values(count);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<std::uint8_t>(i * 7 >> 3U);
  }
  const test::ScratchFolder folder;
  test::write_plain(folder / "large", idx_bytes(labels_magic, {count}, values));
  EXPECT_EQ(read_idx(folder / "large", 1).values, values);
}

struct Damage {
  const char* name;
  const char* file;
  std::string bytes;
  std::vector<std::string> said;  ///< what the message contains besides the file's name
};

void PrintTo(const Damage& damage, std::ostream* out) {
  *out << damage.name;
}

std::string gzipped(const std::string& bytes) {
  const test::ScratchFolder folder;
  test::write_gzip(folder / "whole.gz", bytes);
  return test::read_bytes(folder / "whole.gz");
}

std::string with_byte_flipped(std::string bytes, std::size_t at) {
  bytes[at] = static_cast<char>(bytes[at] ^ 0x55);
  return bytes;
}

std::vector<Damage> all_damages() {
  const std::string whole = idx_bytes(labels_magic, {100}, std::vector<std::uint8_t>(100, 3));
  const std::string packed = gzipped(whole);
  return {
      {"empty", "f", "", {"found an empty file", "fetch it again"}},
      {"empty_gzip", "f.gz", "", {"found an empty file", "fetch it again"}},
      {"half_header", "f", whole.substr(0, 6), {"expected an IDX header", "found 2 of"}},
      {"wrong_magic",
       "f",
       idx_bytes(images_magic, {1, 2, 2}, {1, 2, 3, 4}),
       {"expected magic 00000801", "found 00000803", "exchanged"}},
      {"text", "f", "<html>not found</html>", {"found 3c68746d", "it is a web page"}},
      {"web_page", "f.gz", "\n<!DOCTYPE html>not found", {"expected a gzip", "found a web page"}},
      {"packed_twice", "f.gz", gzipped(packed), {"it is packed twice: unpack it once"}},
      {"not_gzip", "f.gz", whole, {"expected a gzip stream", "drop .gz"}},
      {"truncated", "f", whole.substr(0, 60), {"expected 100 values", "found 52", "fetch"}},
      {"truncated_gzip", "f.gz", packed.substr(0, packed.size() - 12), {"its end missing"}},
      {"checksum",
       "f.gz",
       with_byte_flipped(packed, packed.size() - 6),
       {"found another checksum"}},
      {"stream", "f.gz", with_byte_flipped(packed, 12), {"expected a sound gzip stream"}},
      {"more", "f", whole + "x", {"expected 100 values", "found more"}},
      {"no_values", "f", idx_bytes(labels_magic, {0}, {}), {"found 0 in its header"}},
      {"lying_header",
       "f",
       idx_bytes(labels_magic, {0xffffffff}, {1, 2, 3}),
       {"expected 4294967295 values", "found 3"}},
  };
}

class DamagedIdx : public testing::TestWithParam<Damage> {};

TEST_P(DamagedIdx, IsRefusedByName) {
  const test::ScratchFolder folder;
  const auto path = folder / GetParam().file;
  test::write_plain(path, GetParam().bytes);
  const std::string message = test::message_of<DataError>([&] { read_idx(path, 1); });
  EXPECT_THAT(message, HasSubstr(path.string() + ": expected "));
  for (const std::string& part : GetParam().said) {
    EXPECT_THAT(message, HasSubstr(part));
  }
}

INSTANTIATE_TEST_SUITE_P(All, DamagedIdx, testing::ValuesIn(all_damages()),
                         [](const auto& instance) { return std::string(instance.param.name); });

TEST(Idx, RefusesCountsThatNoFileHolds) {
  const test::ScratchFolder folder;
  const std::uint32_t huge = 0xffffffff;
  test::write_plain(folder / "f", idx_bytes(images_magic, {huge, huge, huge}, {1}));
  EXPECT_THAT(test::message_of<DataError>([&] { read_idx(folder / "f", 3); }),
              HasSubstr("found 4294967295 × 4294967295 × 4294967295 in its header"));
}

TEST(Idx, RefusesAFolderAndAMissingFile) {
  const test::ScratchFolder folder;
  EXPECT_THAT(test::message_of<DataError>([&] { read_idx(folder.path(), 1); }),
              HasSubstr("found a folder"));
  EXPECT_THAT(test::message_of<DataError>([&] { read_idx(folder / "none", 1); }),
              HasSubstr("No such file"));
}

}  // namespace
}  // namespace syncopate
