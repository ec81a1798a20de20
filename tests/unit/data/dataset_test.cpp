// Goal: the datasets that `--data` names load whole, or are refused with the name of the bad file;
//       batches have the requested samples, normalised with the mean and deviation of the data.
// Method: folders of small IDX files, valid and damaged; Debian's Fashion-MNIST; closed values of a
//       hand-made dataset.

#include "data/dataset.hpp"

#include <gmock/gmock.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <numeric>

#include "base/errors.hpp"
#include "tests/unit/data/idx_files.hpp"

namespace syncopate {
namespace {

using test::idx_bytes;
using test::images_magic;
using test::labels_magic;
using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;

constexpr const char* train_images = "train-images-idx3-ubyte";
constexpr const char* train_labels = "train-labels-idx1-ubyte";
constexpr const char* test_images = "t10k-images-idx3-ubyte";
constexpr const char* test_labels = "t10k-labels-idx1-ubyte";

std::string images_of(std::uint32_t count, std::uint8_t value, std::uint32_t side = 28) {
  return idx_bytes(images_magic, {count, side, side},
                   std::vector<std::uint8_t>(std::size_t{count} * side * side, value));
}

std::string labels_of(const std::vector<std::uint8_t>& labels) {
  return idx_bytes(labels_magic, {static_cast<std::uint32_t>(labels.size())}, labels);
}

/// A dataset of three training and two test samples; some files are compressed, some are not.
class SmallDataset : public testing::Test {
 protected:
  SmallDataset() {
    test::write_gzip(folder_ / (std::string(train_images) + ".gz"), images_of(3, 51));
    test::write_plain(folder_ / train_labels, labels_of({7, 0, 9}));
    test::write_plain(folder_ / test_images, images_of(2, 102));
    test::write_gzip(folder_ / (std::string(test_labels) + ".gz"), labels_of({1, 2}));
  }

  std::string refusal() const {
    return test::message_of<DataError>([&] { load_dataset("mnist", folder_.path()); });
  }

  test::ScratchFolder folder_;
};

TEST_F(SmallDataset, LoadsFilesWithADotInTheirNames) {
  std::filesystem::rename(folder_ / train_labels, folder_ / "train-labels.idx1-ubyte");
  std::filesystem::rename(folder_ / (std::string(test_labels) + ".gz"),
                          folder_ / "t10k-labels.idx1-ubyte.gz");
  EXPECT_THAT(load_dataset("mnist", folder_.path()).train.labels, ElementsAre(7, 0, 9));
}

TEST_F(SmallDataset, Loads) {
  const Dataset dataset = load_dataset("mnist", folder_.path());
  EXPECT_EQ(dataset.name, "mnist");
  EXPECT_EQ(dataset.classes, 10U);
  EXPECT_EQ(dataset.train.shape, (SampleShape{1, 28, 28}));
  EXPECT_EQ(dataset.train.labels, (std::vector<Label>{7, 0, 9}));
  EXPECT_EQ(dataset.train.pixels, std::vector<std::uint8_t>(3 * 784, 51));
  EXPECT_EQ(dataset.test.labels, (std::vector<Label>{1, 2}));
  EXPECT_EQ(dataset.test.pixels, std::vector<std::uint8_t>(2 * 784, 102));
}

TEST_F(SmallDataset, LoadsOnlyWhatIsAskedFor) {
  std::filesystem::remove(folder_ / test_images);
  const Dataset train = load_dataset("mnist", folder_.path(), Which::train);
  EXPECT_EQ(train.train.samples(), 3U);
  EXPECT_EQ(train.test.samples(), 0U);
  EXPECT_EQ(train.test.shape, train.train.shape);
  EXPECT_THAT(refusal(), HasSubstr(test_images));
}

TEST_F(SmallDataset, PrefersAnUnpackedFile) {
  test::write_plain(folder_ / train_images, images_of(3, 99));
  EXPECT_EQ(load_dataset("mnist", folder_.path()).train.pixels[0], 99);
}

TEST_F(SmallDataset, RefusesAnotherNumberOfLabels) {
  test::write_plain(folder_ / train_labels, labels_of({7, 0}));
  EXPECT_THAT(refusal(), testing::AllOf(HasSubstr((folder_ / train_labels).string()),
                                        HasSubstr("expected 3 labels"), HasSubstr("found 2")));
}

TEST_F(SmallDataset, RefusesALabelOutOfRange) {
  test::write_plain(folder_ / train_labels, labels_of({7, 10, 9}));
  EXPECT_THAT(refusal(), testing::AllOf(HasSubstr((folder_ / train_labels).string()),
                                        HasSubstr("expected labels from 0 to 9"),
                                        HasSubstr("found 10 at sample 1")));
}

TEST_F(SmallDataset, RefusesImagesOfAnotherShape) {
  test::write_plain(folder_ / test_images, images_of(2, 1, 32));
  EXPECT_THAT(refusal(),
              testing::AllOf(HasSubstr((folder_ / test_images).string()),
                             HasSubstr("expected images of 28 × 28"), HasSubstr("found 32 × 32")));
}

/// The files have only headers. If a file were unpacked first, it would be refused as truncated.
TEST_F(SmallDataset, ComparesHeadersBeforeItUnpacksValues) {
  test::write_gzip(folder_ / (std::string(train_images) + ".gz"),
                   idx_bytes(images_magic, {4'000'000, 28, 28}, {}));
  EXPECT_THAT(refusal(),
              testing::AllOf(HasSubstr((folder_ / train_labels).string()),
                             HasSubstr("expected 4000000 labels"), HasSubstr("found 3")));
  test::write_gzip(folder_ / (std::string(train_images) + ".gz"),
                   idx_bytes(images_magic, {5'500'000, 28, 28}, {}));
  EXPECT_THAT(refusal(),
              testing::AllOf(HasSubstr(train_images), HasSubstr("expected at most 4194304 images"),
                             HasSubstr("found 5500000")));
}

TEST_F(SmallDataset, RefusesExchangedFiles) {
  test::write_plain(folder_ / test_images, labels_of({1, 2}));
  EXPECT_THAT(refusal(),
              testing::AllOf(HasSubstr((folder_ / test_images).string()), HasSubstr("exchanged")));
}

TEST_F(SmallDataset, RefusesAFolderInAFilesPlace) {
  std::filesystem::remove(folder_ / train_labels);
  std::filesystem::create_directory(folder_ / train_labels);
  EXPECT_THAT(refusal(), HasSubstr("found a folder"));
}

TEST(Dataset, SaysWhatToDoForMissingFiles) {
  const test::ScratchFolder folder;
  const auto missing = [&](const char* name, const std::filesystem::path& where) {
    return test::message_of<DataError>([&] { load_dataset(name, where); });
  };
  EXPECT_THAT(
      missing("fashion-mnist", folder.path()),
      testing::AllOf(HasSubstr(folder.path().string()), HasSubstr("train-images-idx3-ubyte.gz"),
                     HasSubstr("found neither"), HasSubstr("package dataset-fashion-mnist")));
  EXPECT_THAT(missing("fashion-mnist", folder / "none"), HasSubstr("found no such folder"));
  EXPECT_THAT(missing("mnist", ""), testing::AllOf(HasSubstr("mnist: expected a folder"),
                                                   HasSubstr("pass their folder as --data-dir")));
}

TEST(Dataset, RefusesAnUnknownName) {
  EXPECT_EQ(test::message_of<ConfigError>([] { load_dataset("imagenet", ""); }),
            "unknown dataset 'imagenet': expected one of fashion-mnist, mnist, cifar10, cifar100, "
            "synthetic, or the path of a folder, with a slash");
}

/// Returns mean and standard deviation of the pixels, scaled to [0, 1].
std::array<double, 2> moments_of(const ImageSet& set) {
  std::array<double, 256> counts{};
  for (const std::uint8_t pixel : set.pixels) {
    ++counts[pixel];
  }
  const double total = static_cast<double>(set.pixels.size());
  double sum = 0;
  double squares = 0;
  for (std::size_t pixel = 0; pixel < counts.size(); ++pixel) {
    const double scaled = static_cast<double>(pixel) / 255;
    sum += counts[pixel] * scaled;
    squares += counts[pixel] * scaled * scaled;
  }
  const double mean = sum / total;
  return {mean, std::sqrt(squares / total - mean * mean)};
}

TEST(Dataset, NormalisesFashionMnistByItsOwnFigures) {
  if (!std::filesystem::exists("/usr/share/datasets/fashion-mnist") &&
      std::getenv("CI") == nullptr) {
    GTEST_SKIP() << "Debian's package dataset-fashion-mnist is not installed";
  }
  const Dataset dataset = load_dataset("fashion-mnist", "");
  EXPECT_EQ(dataset.train.samples(), 60'000U);
  EXPECT_EQ(dataset.test.samples(), 10'000U);
  const auto [mean, standard_deviation] = moments_of(dataset.train);
  EXPECT_THAT(dataset.mean, ElementsAre(FloatNear(static_cast<float>(mean), 1e-4F)));
  EXPECT_THAT(dataset.standard_deviation,
              ElementsAre(FloatNear(static_cast<float>(standard_deviation), 1e-4F)));
  for (std::uint8_t label = 0; label < 10; ++label) {
    EXPECT_EQ(std::ranges::count(dataset.train.labels, label), 6'000);
  }
}

TEST(Dataset, NormalisesSyntheticByItsOwnFigures) {
  const Dataset dataset = load_dataset("synthetic", "");
  const auto [mean, standard_deviation] = moments_of(dataset.train);
  EXPECT_THAT(dataset.mean, ElementsAre(FloatNear(static_cast<float>(mean), 1e-4F)));
  EXPECT_THAT(dataset.standard_deviation,
              ElementsAre(FloatNear(static_cast<float>(standard_deviation), 1e-4F)));
}

TEST(Gather, CopiesTheSamplesAskedForNormalised) {
  Dataset dataset{"toy", 3, {0.2F}, {0.5F}, {}, {}};
  const ImageSet set{{1, 1, 2}, {0, 51, 102, 153, 204, 255}, {0, 1, 2}};
  Batch batch;
  const std::vector<std::uint32_t> indices{2, 0};
  gather(dataset, set, indices, batch);
  EXPECT_EQ(batch.shape, set.shape);
  EXPECT_EQ(batch.labels, (std::vector<std::int64_t>{2, 0}));
  EXPECT_THAT(batch.features, testing::Pointwise(testing::FloatNear(1e-6F),
                                                 std::vector<float>{1.2F, 1.6F, -0.4F, 0.0F}));
}

TEST(Gather, NormalisesEachChannelByItsOwnFigures) {
  const Dataset dataset{"toy", 2, {0.2F, 0.6F}, {0.5F, 0.25F}, {}, {}};
  const ImageSet set{{2, 1, 2}, {0, 51, 102, 153, 204, 255, 51, 0}, {0, 1}};
  Batch batch;
  gather(dataset, set, std::vector<std::uint32_t>{1}, batch);
  EXPECT_THAT(batch.features,
              testing::Pointwise(FloatNear(1e-6F), std::vector<float>{1.2F, 1.6F, -1.6F, -2.4F}));
  const Dataset of_one_channel{"toy", 2, {0.2F}, {0.5F}, {}, {}};
  EXPECT_THROW(gather(of_one_channel, set, std::vector<std::uint32_t>{1}, batch), InternalError);
}

TEST(Gather, CopiesWeightsWhereSamplesHaveSome) {
  const Dataset dataset{"toy", 3, {0}, {1}, {}, {}};
  ImageSet set{{1, 1, 1}, {0, 51, 102}, {0, 1, 2}, {0.5F, 2, 3}};
  Batch batch;
  gather(dataset, set, std::vector<std::uint32_t>{2, 0}, batch);
  EXPECT_THAT(batch.weights, ElementsAre(3, 0.5F));
  set.weights.clear();
  gather(dataset, set, std::vector<std::uint32_t>{2, 0}, batch);
  EXPECT_TRUE(batch.weights.empty()) << "all 1";
}

TEST(Gather, ReusesTheMemoryOfABatch) {
  const Dataset dataset{"toy", 2, {0}, {1}, {}, {}};
  const ImageSet set{{1, 1, 1}, {0, 255}, {0, 1}};
  Batch batch;
  gather(dataset, set, std::vector<std::uint32_t>{0, 1}, batch);
  const float* memory = batch.features.data();
  gather(dataset, set, {}, batch);
  EXPECT_EQ(batch.samples(), 0U);
  gather(dataset, set, std::vector<std::uint32_t>{1}, batch);
  EXPECT_EQ(batch.features, std::vector<float>{1});
  EXPECT_EQ(batch.features.data(), memory);
}

TEST(Gather, RefusesASampleThatIsNotThere) {
  const Dataset dataset{"toy", 2, {0}, {1}, {}, {}};
  const ImageSet set{{1, 1, 1}, {0, 255}, {0, 1}};
  Batch batch;
  EXPECT_THROW(gather(dataset, set, std::vector<std::uint32_t>{1, 2}, batch), InternalError);
}

}  // namespace
}  // namespace syncopate
