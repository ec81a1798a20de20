// Goal:   CIFAR-10 and CIFAR-100 load whole or in part, and other files in their place are refused
//         in one line that says what to do.
// Method: the real images of CIFAR-10 are compared with sums that another program computed; small
//         files of the same format, valid and damaged.

#include "data/cifar.hpp"

#include <gmock/gmock.h>

#include <cstdlib>
#include <numeric>

#include "base/errors.hpp"
#include "tests/unit/data/idx_files.hpp"

namespace syncopate {
namespace {

namespace fs = std::filesystem;

using testing::AllOf;
using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;

/// Returns the folder of the real images; empty if this machine does not have them.
fs::path real_images() {
  const char* const named = std::getenv("SYNCOPATE_CIFAR10_DIR");
  if (named != nullptr) {
    return named;
  }
  const fs::path beside = fs::path(SYNCOPATE_SOURCE_TREE) / "../shared/data/cifar-10-batches-bin";
  return fs::exists(beside) ? beside : fs::path();
}

std::uint64_t sum_of_pixels(const ImageSet& set) {
  return std::accumulate(set.pixels.begin(), set.pixels.end(), std::uint64_t{0});
}

std::vector<std::uint64_t> class_counts(const ImageSet& set) {
  std::vector<std::uint64_t> counts(10);
  for (const Label label : set.labels) {
    ++counts.at(label);
  }
  return counts;
}

/// The expected figures of the first 1,017 images of each file were computed with NumPy.
TEST(Cifar10, LoadsTheRealImages) {
  const fs::path folder = real_images();
  if (folder.empty() || fs::file_size(folder / "test_batch.bin") != 1'017 * 3'073) {
    ASSERT_EQ(std::getenv("CI"), nullptr) << "CI has the images of ../shared/data";
    GTEST_SKIP() << "SYNCOPATE_CIFAR10_DIR names no folder with the first 1,017 images a file";
  }
  const Dataset dataset = load_cifar("cifar10", folder);
  EXPECT_EQ(dataset.classes, 10U);
  EXPECT_EQ(dataset.train.shape, (SampleShape{3, 32, 32}));
  EXPECT_EQ(dataset.train.samples(), 5'085U);
  EXPECT_EQ(dataset.test.samples(), 1'017U);
  EXPECT_EQ(sum_of_pixels(dataset.train), 1'894'073'709U);
  EXPECT_EQ(sum_of_pixels(dataset.test), 380'676'608U);
  EXPECT_THAT(class_counts(dataset.train),
              ElementsAre(517, 524, 490, 493, 537, 475, 503, 516, 529, 501));
  EXPECT_THAT(class_counts(dataset.test),
              ElementsAre(105, 93, 100, 104, 92, 87, 114, 102, 110, 110));
  EXPECT_EQ(dataset.train.labels.front(), 6);
  EXPECT_EQ(dataset.train.labels.back(), 3);
  EXPECT_EQ(dataset.train.pixels.back(), 117);
  const auto at = [&](std::size_t image, std::size_t channel, std::size_t y, std::size_t x) {
    return dataset.train.pixels[((image * 3 + channel) * 32 + y) * 32 + x];
  };
  EXPECT_THAT((std::vector<int>{at(1017, 0, 16, 7), at(1017, 1, 16, 7), at(1017, 2, 16, 7)}),
              ElementsAre(78, 81, 84));
  EXPECT_THAT(dataset.mean, ElementsAre(FloatNear(0.493607F, 1e-5F), FloatNear(0.484597F, 1e-5F),
                                        FloatNear(0.448276F, 1e-5F)));
  EXPECT_THAT(dataset.standard_deviation,
              ElementsAre(FloatNear(0.248141F, 1e-5F), FloatNear(0.244552F, 1e-5F),
                          FloatNear(0.262132F, 1e-5F)));
}

std::string record(const std::string& labels, char pixel) {
  return labels + std::string(3'072, pixel);
}

class SmallCifar : public testing::Test {
 protected:
  SmallCifar() {
    for (char file = 1; file <= 5; ++file) {
      const std::string name = fmt::format("data_batch_{}.bin", int{file});
      test::write_plain(folder_ / name, record({file}, file) + record({9}, 'x'));
    }
    test::write_plain(folder_ / "test_batch.bin", record({0}, 't'));
  }

  std::string refusal(const std::string& name = "cifar10") const {
    return test::message_of<DataError>([&] { load_cifar(name, folder_.path()); });
  }

  test::ScratchFolder folder_;
};

TEST_F(SmallCifar, LoadsFilesOfAnyLengthInTheirOrder) {
  test::write_plain(folder_ / "data_batch_3.bin", record({7}, 'z'));
  const Dataset dataset = load_cifar("cifar10", folder_.path());
  EXPECT_THAT(dataset.train.labels, ElementsAre(1, 9, 2, 9, 7, 4, 9, 5, 9));
  EXPECT_EQ(dataset.train.pixels[4 * 3'072], 'z');
  EXPECT_THAT(dataset.test.labels, ElementsAre(0));
  const Dataset test = load_cifar("cifar10", folder_.path(), Which::test);
  EXPECT_EQ(test.train.samples(), 0U);
  EXPECT_EQ(test.mean, dataset.mean) << "that of the training set";
}

TEST_F(SmallCifar, HasAChecksumForEachFile) {
  const auto sums = [&] {
    std::vector<std::uint32_t> all;
    for (const DataFile& file : cifar_files("cifar10", folder_.path())) {
      all.push_back(file.crc32);
    }
    return all;
  };
  const auto before = sums();
  ASSERT_EQ(before.size(), 6U);
  test::write_plain(folder_ / "test_batch.bin", "123456789");
  auto after = sums();
  EXPECT_EQ(after[5], 0xcbf43926U) << "the check value of CRC-32";
  std::string damaged = record({2}, 2) + record({9}, 'x');
  damaged[1'000] ^= 1;
  damaged[5'000] ^= 4;
  test::write_plain(folder_ / "data_batch_2.bin", damaged);
  after = sums();
  EXPECT_NE(after[1], before[1]);
  EXPECT_EQ(after[0], before[0]);
  EXPECT_EQ(cifar_files("cifar10", folder_.path())[1].path.filename(), "data_batch_2.bin");
}

TEST_F(SmallCifar, FindsTheFolderOfTheArchive) {
  const test::ScratchFolder outer;
  fs::copy(folder_.path(), outer / "cifar-10-batches-bin");
  EXPECT_EQ(load_cifar("cifar10", outer.path()).train.samples(), 10U);
}

TEST_F(SmallCifar, RefusesALengthThatNoImagesHave) {
  const std::string whole = record({0}, 't');
  for (const std::string& bytes : {whole.substr(1), whole + "x", std::string()}) {
    test::write_plain(folder_ / "test_batch.bin", bytes);
    EXPECT_THAT(refusal(),
                AllOf(HasSubstr((folder_ / "test_batch.bin").string()),
                      HasSubstr("expected a multiple of 3073 bytes, the length of an image of "
                                "CIFAR-10"),
                      HasSubstr(fmt::format("found {};", bytes.size()))));
  }
  test::write_plain(folder_ / "test_batch.bin", record({1, 2}, 'c'));
  EXPECT_THAT(refusal(), HasSubstr("found 3074; check that the file is whole and of this dataset"));
}

TEST_F(SmallCifar, RefusesALabelOutOfRange) {
  test::write_plain(folder_ / "data_batch_2.bin", record({3}, 'a') + record({10}, 'b'));
  EXPECT_THAT(refusal(),
              AllOf(HasSubstr("data_batch_2.bin: expected labels from 0 to 9, found 10 at "
                              "image 1")));
}

TEST_F(SmallCifar, SaysWhatToDownload) {
  fs::remove(folder_ / "data_batch_4.bin");
  const char* const archive =
      "download https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz, unpack it, and pass its "
      "folder cifar-10-batches-bin as --data-dir";
  EXPECT_THAT(refusal(), AllOf(HasSubstr("data_batch_4.bin: expected this file of CIFAR-10, binary "
                                         "version, found no such file"),
                               HasSubstr(archive)));
  const auto missing = [&](const fs::path& folder) {
    return test::message_of<DataError>([&] { load_cifar("cifar10", folder); });
  };
  EXPECT_THAT(missing(folder_ / "none"), AllOf(HasSubstr("no such folder"), HasSubstr(archive)));
  EXPECT_EQ(missing(""), std::string("CIFAR-10: expected a folder, found none; ") + archive);
}

TEST_F(SmallCifar, NamesTheOtherDatasetWhereTheFolderHoldsIt) {
  EXPECT_THAT(refusal("cifar100"),
              HasSubstr("train.bin: expected this file of CIFAR-100, found data_batch_1.bin of "
                        "CIFAR-10; choose --data cifar10"));
}

TEST(Cifar100, ReadsTheFineLabel) {
  const test::ScratchFolder folder;
  test::write_plain(folder / "train.bin", record({19, 99}, 'a') + record({0, 42}, 'b'));
  test::write_plain(folder / "test.bin", record({3, 0}, 'c'));
  const Dataset dataset = load_cifar("cifar100", folder.path());
  EXPECT_EQ(dataset.classes, 100U);
  EXPECT_THAT(dataset.train.labels, ElementsAre(99, 42));
  EXPECT_EQ(dataset.train.pixels[3'072], 'b');
  EXPECT_THAT(dataset.test.labels, ElementsAre(0));
  const auto refusal = [&] {
    return test::message_of<DataError>([&] { load_cifar("cifar100", folder.path()); });
  };
  test::write_plain(folder / "test.bin", record({20, 0}, 'c'));
  EXPECT_THAT(refusal(), HasSubstr("expected coarse labels from 0 to 19, found 20 at image 0"));
  test::write_plain(folder / "test.bin", record({19, 100}, 'c'));
  EXPECT_THAT(refusal(), HasSubstr("expected fine labels from 0 to 99, found 100 at image 0"));
  test::write_plain(folder / "test.bin", record({1}, 'c'));
  EXPECT_THAT(refusal(), HasSubstr("expected a multiple of 3074 bytes"));
}

}  // namespace
}  // namespace syncopate
