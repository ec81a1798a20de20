// Goal:   pairs of NumPy arrays become a dataset by the documented rules; every other file is
//         refused in one line.
// Method: small files written byte by byte, as NumPy writes them, each damaged in one way.

#include "data/npy.hpp"

#include <gmock/gmock.h>

#include <cstring>

#include "base/errors.hpp"
#include "base/random.hpp"
#include "data/npy_dataset.hpp"
#include "tests/unit/data/idx_files.hpp"

namespace syncopate {
namespace {

namespace fs = std::filesystem;

using testing::AllOf;
using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;

std::string with_header(const std::string& header, const std::string& values, char version = 1) {
  std::string bytes = "\x93NUMPY";
  bytes += {version, '\0', static_cast<char>(header.size() & 0xffU),
            static_cast<char>(header.size() >> 8U)};
  if (version > 1) {
    bytes += std::string(2, '\0');
  }
  return bytes + header + values;
}

std::string npy(const std::string& type, const std::string& shape, const std::string& values) {
  return with_header(
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}   \n", type, shape),
      values);
}

template <class Value>
std::string bytes_of(const std::vector<Value>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Value)};
}

std::string header_refusal(const std::string& bytes) {
  return test::message_of<DataError>([&] { read_npy_header("an.npy", bytes); });
}

TEST(Npy, ReadsHeadersOfAllVersions) {
  for (const char version : {'\1', '\2', '\3'}) {
    const NpyHeader header = read_npy_header(
        "x",
        with_header("{\"shape\": (3, 4), 'fortran_order': False, 'descr': '<f8'}", "", version));
    EXPECT_EQ(header.type_name(), "float64");
    EXPECT_THAT(header.shape, ElementsAre(3, 4));
    EXPECT_EQ(header.offset, (version == 1 ? 10U : 12U) + 57U);
  }
  EXPECT_EQ(read_npy_header("x", npy("|u1", "7,", "")).type_name(), "uint8");
  EXPECT_TRUE(read_npy_header("x", npy("|u1", "", "")).shape.empty());
}

TEST(Npy, RefusesOtherHeaders) {
  EXPECT_THAT(header_refusal("PK\x03\x04"), HasSubstr("an.npy: expected an array of NumPy (.npy)"));
  EXPECT_THAT(header_refusal(with_header("{}", "", 4)), HasSubstr("version 1, 2 or 3"));
  EXPECT_THAT(header_refusal(npy("|u1", "7,", "").substr(0, 30)),
              HasSubstr("found its end missing"));
  EXPECT_THAT(header_refusal(std::string("\x93NUMPY\x02\x00\xff\xff\xff\x7f", 12)),
              HasSubstr("expected a header of at most 65536 bytes, found one of 2147483647"));
  EXPECT_THAT(header_refusal(npy(">f4", "7,", "")),
              HasSubstr("expected values whose low byte comes "
                        "first, found descr '>f4'"));
  EXPECT_THAT(header_refusal(npy("<c8", "7,", "")), HasSubstr("found descr '<c8'"));
  EXPECT_THAT(header_refusal(npy("|O", "7,", "")), HasSubstr("found descr '|O'"));
  EXPECT_THAT(header_refusal(with_header("{'descr': [('a', '<f4')], ", "")),
              HasSubstr("found one of records"));
  EXPECT_THAT(
      header_refusal(with_header("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 2), }", "")),
      HasSubstr("found fortran_order; save numpy.ascontiguousarray"));
  for (const char* damaged :
       {"", "{", "{}", "{'descr': '|u1', 'shape': (1,)}", "{'descr'}", "{'other': 1}",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (1,)} and more",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (-1,)}",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (1"}) {
    EXPECT_THAT(header_refusal(with_header(damaged, "")),
                HasSubstr("expected a header with descr, fortran_order and shape"))
        << damaged;
  }
}

/// A randomly damaged header is either read or refused in one line.
TEST(Npy, SurvivesDamage) {
  const std::uint64_t seed = 20261124;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  Random random(seed);
  const std::string whole = npy("<i4", "3, 4", std::string(48, 'x'));
  for (int round = 0; round < 5'000; ++round) {
    std::string bytes = whole;
    for (std::uint64_t change = random.below(3); change < 3; ++change) {
      bytes[random.below(bytes.size())] = static_cast<char>(random.below(256));
    }
    bytes.resize(random.below(3) == 0 ? random.below(bytes.size()) : bytes.size());
    try {
      EXPECT_LE(read_npy_header("x", bytes).offset, bytes.size());
    } catch (const DataError& error) {
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    }
  }
}

/// Files with three training and two test images of two rows and one column.
class Arrays : public testing::Test {
 protected:
  Arrays() {
    put("train_images", npy("|u1", "3, 2, 1", bytes_of<std::uint8_t>({1, 2, 3, 4, 5, 6})));
    put("train_labels", npy("<i8", "3,", bytes_of<std::int64_t>({2, 0, 1})));
    put("test_images", npy("|u1", "2, 2, 1", bytes_of<std::uint8_t>({7, 8, 9, 10})));
    put("test_labels", npy("|u1", "2, 1", bytes_of<std::uint8_t>({1, 2})));
  }

  void put(const std::string& name, const std::string& bytes) const {
    test::write_plain(folder_ / (name + ".npy"), bytes);
  }
  std::string refusal() const {
    return test::message_of<DataError>([&] { load_npy_dataset(folder_.path()); });
  }

  test::ScratchFolder folder_;
};

TEST_F(Arrays, Load) {
  const Dataset dataset = load_dataset(folder_.path().string() + "/", "");
  EXPECT_EQ(dataset.classes, 3U);
  EXPECT_EQ(dataset.train.shape, (SampleShape{1, 2, 1}));
  EXPECT_THAT(dataset.train.pixels, ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(dataset.train.labels, ElementsAre(2, 0, 1));
  EXPECT_THAT(dataset.test.labels, ElementsAre(1, 2));
  EXPECT_TRUE(dataset.train.weights.empty());
  EXPECT_THAT(dataset.mean, ElementsAre(FloatNear(3.5F / 255, 1e-7F)));
  EXPECT_THAT(test::message_of<ConfigError>(
                  [&] { load_dataset(folder_.path().string() + "/", "", Which::both, 32); }),
              HasSubstr("an image size has no effect on the arrays"));
}

TEST_F(Arrays, PutChannelsFirst) {
  put("train_images", npy("|u1", "1, 2, 5, 3", [] {
        std::string values;
        for (char pixel = 0; pixel < 30; ++pixel) {
          values += pixel;
        }
        return values;
      }()));
  put("train_labels", npy("<i4", "1,", bytes_of<std::int32_t>({0})));
  put("test_images", npy("|u1", "1, 2, 5, 3", std::string(30, '\1')));
  put("test_labels", npy("<u2", "1,", bytes_of<std::uint16_t>({0})));
  EXPECT_EQ(load_npy_dataset(folder_.path()).train.shape, (SampleShape{2, 5, 3}))
      << "2 channels: the second size is small enough";
  put("train_images", npy("|u1", "1, 5, 2, 3", [] {
        std::string values;
        for (char pixel = 0; pixel < 30; ++pixel) {
          values += pixel;
        }
        return values;
      }()));
  put("test_images", npy("|u1", "1, 5, 2, 3", std::string(30, '\1')));
  const ImageSet train = load_npy_dataset(folder_.path()).train;
  EXPECT_EQ(train.shape, (SampleShape{3, 5, 2})) << "channels last";
  EXPECT_THAT(std::vector<int>(train.pixels.begin() + 8, train.pixels.begin() + 12),
              ElementsAre(24, 27, 1, 4));
}

TEST_F(Arrays, HaveManyClasses) {
  put("train_labels", npy("<u2", "3,", bytes_of<std::uint16_t>({2, 1'000, 65'535})));
  EXPECT_EQ(load_npy_dataset(folder_.path()).classes, 65'536U);
  put("train_labels", npy("<i4", "3,", bytes_of<std::int32_t>({2, 65'536, 1})));
  EXPECT_THAT(refusal(), HasSubstr("expected labels from 0 to 65535, found 65536 at sample 1"));
  put("train_labels", npy("|i1", "3,", bytes_of<std::int8_t>({2, 0, -1})));
  EXPECT_THAT(refusal(), HasSubstr("train_labels.npy: expected labels from 0 to 65535, found -1 at "
                                   "sample 2"));
}

TEST_F(Arrays, AreRefusedWhereTheyContradictEachOther) {
  put("test_labels", npy("|u1", "2,", bytes_of<std::uint8_t>({1, 3})));
  EXPECT_THAT(refusal(), HasSubstr("expected labels from 0 to 2, found 3 at sample 1"));
  put("test_labels", npy("|u1", "3,", bytes_of<std::uint8_t>({1, 2, 0})));
  EXPECT_THAT(refusal(), HasSubstr("expected 2 labels, whole numbers of shape (N), found uint8 of "
                                   "shape (3)"));
  put("test_labels", npy("<f4", "2,", bytes_of<float>({1, 2})));
  EXPECT_THAT(refusal(), HasSubstr("found float32 of shape (2)"));
  put("test_labels", npy("|u1", "2,", bytes_of<std::uint8_t>({1, 2})));
  put("test_images", npy("|u1", "2, 1, 2", bytes_of<std::uint8_t>({7, 8, 9, 10})));
  EXPECT_THAT(refusal(),
              HasSubstr("expected images of 1x2x1, as the training images, found 1x1x2"));
}

TEST_F(Arrays, AreRefusedWhereTheyAreNoImages) {
  put("train_images", npy("<f4", "3, 2, 1", bytes_of<float>({1, 2, 3, 4, 5, 6})));
  EXPECT_THAT(refusal(), AllOf(HasSubstr("train_images.npy: expected images, uint8 of shape"),
                               HasSubstr("found float32 of shape (3, 2, 1)")));
  put("train_images", npy("|u1", "1, 5, 5, 5", std::string(125, 'x')));
  EXPECT_THAT(refusal(), HasSubstr("found uint8 of shape (1, 5, 5, 5)"));
  put("train_images", npy("|u1", "3, 2, 1", "12345"));
  EXPECT_THAT(refusal(), HasSubstr("expected 6 bytes of values, of shape (3, 2, 1) and type uint8, "
                                   "found 5; copy the file again"));
  put("train_images", npy("|u1", "4294967296, 4294967296, 4294967296", ""));
  EXPECT_THAT(refusal(), HasSubstr("expected sizes above 0 that a file can hold"));
  fs::remove(folder_ / "test_images.npy");
  put("train_images", npy("|u1", "3, 2, 1", "123456"));
  EXPECT_THAT(refusal(),
              HasSubstr("test_images.npy: expected an array of NumPy, found No such file"));
}

TEST_F(Arrays, MayHaveWeights) {
  put("train_weights", npy("<f8", "3,", bytes_of<double>({0.5, 0, 4})));
  EXPECT_THAT(load_npy_dataset(folder_.path()).train.weights, ElementsAre(0.5F, 0, 4));
  put("train_weights", npy("<f4", "3,", bytes_of<float>({1, 2, 3})));
  EXPECT_THAT(load_npy_dataset(folder_.path()).train.weights, ElementsAre(1, 2, 3));
  put("train_weights", npy("<f4", "3,", bytes_of<float>({1, -2, 3})));
  EXPECT_THAT(refusal(),
              HasSubstr("train_weights.npy: expected weights from 0 to 1e+30, found -2 at "
                        "sample 1"));
  put("train_weights", npy("<f4", "3,", bytes_of<float>({1, 2, std::nanf("")})));
  EXPECT_THAT(refusal(), HasSubstr("found nan at sample 2"));
  put("train_weights", npy("<f4", "3,", bytes_of<float>({0, 0, 0})));
  EXPECT_THAT(refusal(), HasSubstr("expected a weight above 0, found none"));
  put("train_weights", npy("<f4", "2,", bytes_of<float>({0, 1})));
  EXPECT_THAT(refusal(), HasSubstr("expected 3 weights, float32 or float64 of shape (N)"));
}

}  // namespace
}  // namespace syncopate
