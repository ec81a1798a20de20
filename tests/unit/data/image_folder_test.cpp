// Goal:   images in class folders become one dataset, for all formats, sizes and colours; a bad
//         image is refused with its path, and an image needs no more memory than the limit on
//         headers allows.
// Method: small images written by libpng and libjpeg-turbo, valid, randomly damaged and truncated;
//         scaling is compared with values of Pillow.

#include "data/image_folder.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/errors.hpp"
#include "base/random.hpp"
#include "data/image_file.hpp"
#include "data/image_set.hpp"
#include "tests/support/log_capture.hpp"
#include "tests/unit/data/image_files.hpp"

namespace syncopate {
namespace {

namespace fs = std::filesystem;

using test::jpeg_bytes;
using test::plain_png;
using test::png_bytes;
using test::write_into;
using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;

using Bytes = std::vector<std::uint8_t>;

Image decoded(const std::string& bytes) {
  return decode_image("an.image",
                      {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
}

std::string refusal_of(const std::string& bytes) {
  return test::message_of<DataError>([&] { decoded(bytes); });
}

TEST(DecodeImage, PutsTheChannelsOfAPngFirst) {
  const Image colours = decoded(png_bytes(2, 1, {1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(colours.shape, (SampleShape{3, 1, 2}));
  EXPECT_EQ(colours.pixels, (Bytes{1, 4, 2, 5, 3, 6}));
  const Image grey = decoded(png_bytes(3, 1, {7, 8, 9}));
  EXPECT_EQ(grey.shape, (SampleShape{1, 1, 3}));
  EXPECT_EQ(grey.pixels, (Bytes{7, 8, 9}));
}

// The expected values of the next four tests are those of Pillow's convert("RGB") or convert("L").

TEST(DecodeImage, KeepsTheColoursOfTransparentPixels) {
  EXPECT_EQ(decoded(png_bytes(2, 1, {10, 20, 30, 255, 40, 50, 60, 0})).pixels,
            (Bytes{10, 40, 20, 50, 30, 60}));
}

TEST(DecodeImage, KeepsValuesWhateverTheirGamma) {
  const std::string plain = png_bytes(3, 1, {0, 100, 255});
  for (const std::uint32_t gamma : {45'455U, 55'556U, 100'000U}) {
    EXPECT_EQ(decoded(test::with_gamma(plain, gamma)).pixels, (Bytes{0, 100, 255})) << gamma;
  }
}

TEST(DecodeImage, TakesTheColoursOfAPalette) {
  const Image image = decoded(test::palette_png({{{255, 0, 0, 0}, {1, 2, 3, 128}}}, {1, 0}));
  EXPECT_EQ(image.shape, (SampleShape{3, 1, 2}));
  EXPECT_EQ(image.pixels, (Bytes{1, 255, 2, 0, 3, 0}));
}

TEST(DecodeImage, TakesTheUpperOf16Bits) {
  const Image image = decoded(test::png_of_16_bits({0x12ff, 0x1000, 0x00ff}));
  EXPECT_EQ(image.shape, (SampleShape{1, 1, 3}));
  EXPECT_EQ(image.pixels, (Bytes{0x12, 0x10, 0}));
  EXPECT_FALSE(image.is_dark_of_16_bits);
  EXPECT_TRUE(decoded(test::png_of_16_bits({4'095, 0})).is_dark_of_16_bits);
  EXPECT_FALSE(decoded(png_bytes(2, 1, {0, 3})).is_dark_of_16_bits) << "8 bits";
}

TEST(DecodeImage, ReadsJpegs) {
  const Image grey = decoded(jpeg_bytes(8, 8, Bytes(64, 100)));
  EXPECT_EQ(grey.shape, (SampleShape{1, 8, 8}));
  EXPECT_THAT(grey.pixels, Each(100));
  Bytes red;
  for (int pixel = 0; pixel < 64; ++pixel) {
    red.insert(red.end(), {200, 30, 40});
  }
  const Image colours = decoded(jpeg_bytes(8, 8, red));
  EXPECT_EQ(colours.shape, (SampleShape{3, 8, 8}));
  EXPECT_NEAR(colours.pixels[0], 200, 2);
  EXPECT_NEAR(colours.pixels[64], 30, 2);
  EXPECT_NEAR(colours.pixels[128], 40, 2);
}

/// Returns a JPEG image with a camera's segment APP1, which has the orientation, before its other
/// segments.
std::string with_orientation(const std::string& jpeg, char orientation, bool little_endian) {
  const std::string tiff =
      little_endian ? std::string(
                          "II*\0\x08\0\0\0\x02\0\x0f\x01\x02\0\x01\0\0\0\0\0\0\0"
                          "\x12\x01\x03\0\x01\0\0\0",
                          30) +
                          orientation + std::string(7, '\0')
                    : std::string("MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0", 19) +
                          orientation + std::string(6, '\0');
  const std::string content = std::string("Exif\0\0", 6) + tiff;
  return jpeg.substr(0, 2) + "\xff\xe1" + '\0' + static_cast<char>(content.size() + 2) + content +
         jpeg.substr(2);
}

/// Decodes an image of 16 × 8 pixels, white at the upper left and grey at the lower left, and
/// checks where both are for each orientation.
TEST(DecodeImage, TurnsJpegsUprightAsACameraNoted) {
  Bytes pixels(16 * 8, 0);
  for (std::size_t y = 0; y < 4; ++y) {
    for (std::size_t x = 0; x < 8; ++x) {
      pixels[16 * y + x] = 255;        // upper left
      pixels[16 * (y + 4) + x] = 100;  // lower left
    }
  }
  const std::string jpeg = jpeg_bytes(16, 8, pixels);
  struct Expected {
    std::uint32_t height;
    std::uint32_t width;
    std::vector<int> corners;  // upper left, upper right, lower left, lower right
  };
  const std::vector<Expected> expected{{8, 16, {255, 0, 100, 0}}, {8, 16, {0, 255, 0, 100}},
                                       {8, 16, {0, 100, 0, 255}}, {8, 16, {100, 0, 255, 0}},
                                       {16, 8, {255, 100, 0, 0}}, {16, 8, {100, 255, 0, 0}},
                                       {16, 8, {0, 0, 100, 255}}, {16, 8, {0, 0, 255, 100}}};
  for (std::size_t i = 0; i < 16; ++i) {
    const auto orientation = static_cast<char>(1 + i % 8);
    SCOPED_TRACE(int{orientation});
    const Image image = decoded(with_orientation(jpeg, orientation, i < 8));
    const auto& [height, width, corners] = expected[i % 8];
    ASSERT_EQ(image.shape, (SampleShape{1, height, width}));
    const std::size_t last_row = std::size_t{width} * (height - 1);
    EXPECT_NEAR(image.pixels[0], corners[0], 8);
    EXPECT_NEAR(image.pixels[width - 1], corners[1], 8);
    EXPECT_NEAR(image.pixels[last_row], corners[2], 8);
    EXPECT_NEAR(image.pixels[last_row + width - 1], corners[3], 8);
  }
  EXPECT_EQ(decoded(with_orientation(jpeg, 9, true)).shape, (SampleShape{1, 8, 16}));
}

/// Returns a PNG image whose header has these sides. They are in the first chunk, behind 16 bytes;
/// the chunk gets a new checksum.
std::string png_that_announces(std::uint32_t side) {
  std::string bytes = png_bytes(1, 1, {0});
  for (unsigned at = 0; at < 8; ++at) {
    bytes[16 + at] = static_cast<char>(side >> (24 - 8 * (at % 4)) & 0xffU);
  }
  const auto sum = ::crc32(0, reinterpret_cast<const Bytef*>(bytes.data() + 12), 17);
  for (unsigned at = 0; at < 4; ++at) {
    bytes[29 + at] = static_cast<char>(sum >> (24 - 8 * at) & 0xffU);
  }
  return bytes;
}

TEST(DecodeImage, RefusesAnAnnouncedSizeBeforeItTakesMemory) {
  EXPECT_THAT(refusal_of(png_that_announces(100'000)),
              AllOf(HasSubstr("an.image: expected an image of at most 16384 pixels a side"),
                    HasSubstr("found 100000 × 100000; replace this image or remove it")));
  EXPECT_THAT(refusal_of(png_that_announces(16'384)), HasSubstr("found 16384 × 16384"));
}

TEST(DecodeImage, RefusesWhatIsNoWholeImage) {
  const std::string png = png_bytes(2, 2, {1, 2, 3, 4});
  const std::string jpeg = jpeg_bytes(16, 16, Bytes(256, 9));
  EXPECT_THAT(refusal_of(""), HasSubstr("expected a PNG or JPEG image, found an empty file"));
  EXPECT_THAT(refusal_of("GIF89a"), HasSubstr("expected a PNG or JPEG image, found other bytes"));
  EXPECT_THAT(refusal_of(png.substr(0, png.size() / 2)), HasSubstr("expected a whole PNG image"));
  EXPECT_THAT(refusal_of(jpeg.substr(0, jpeg.size() - 8)),
              HasSubstr("expected a whole JPEG image"));
}

/// A randomly damaged file is either decoded or refused in one line.
TEST(DecodeImage, SurvivesDamage) {
  const std::uint64_t seed = 20261123;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  Random random(seed);
  const std::vector<std::string> whole{
      png_bytes(5, 4, Bytes(60, 77)),
      with_orientation(jpeg_bytes(16, 16, Bytes(768, 99)), 6, true)};
  for (int round = 0; round < 2'000; ++round) {
    std::string bytes = whole[random.below(whole.size())];
    for (std::uint64_t change = random.below(4); change < 4; ++change) {
      bytes[random.below(bytes.size())] = static_cast<char>(random.below(256));
    }
    bytes.resize(random.below(4) == 0 ? random.below(bytes.size()) : bytes.size());
    try {
      const Image image = decoded(bytes);
      EXPECT_EQ(image.pixels.size(), image.shape.values());
    } catch (const DataError& error) {
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    }
  }
}

/// Returns an image of 7 × 5 pixels with the values (17 y² + 29 x + 7 x y) mod 256.
Image pattern() {
  Image image{{1, 5, 7}, {}};
  for (int y = 0; y < 5; ++y) {
    for (int x = 0; x < 7; ++x) {
      image.pixels.push_back(static_cast<std::uint8_t>((17 * y * y + 29 * x + 7 * x * y) % 256));
    }
  }
  return image;
}

/// Pillow also rounds between rows and columns, so values may differ by one.
TEST(Scaled, IsWhatPillowCallsBilinearOfTheCentredPart) {
  const auto differences = [](const Image& image, const std::vector<int>& expected) {
    std::vector<int> found;
    for (std::size_t at = 0; at < expected.size(); ++at) {
      found.push_back(std::abs(int{image.pixels.at(at)} - expected[at]));
    }
    return found;
  };
  EXPECT_THAT(differences(scaled(pattern(), 3, 3), {47, 103, 159, 130, 160, 134, 142, 151, 130}),
              Each(testing::Le(1)));
  EXPECT_THAT(differences(scaled(pattern(), 2, 6),
                          {46, 90, 135, 179, 146, 155, 125, 178, 168, 139, 115, 132}),
              Each(testing::Le(1)));
  EXPECT_THAT(differences(scaled(pattern(), 8, 8),
                          {24, 42, 60, 78, 96, 114, 132, 150, 34, 54, 74, 94, 114, 134, 153, 174}),
              Each(testing::Le(1)));
  EXPECT_EQ(scaled(pattern(), 5, 7).pixels, pattern().pixels);
}

/// A folder with two classes of plain images: three training images and one test image.
class Folder : public testing::Test {
 protected:
  Folder() {
    write_into(folder_ / "train/cat/b.png", plain_png(2, 2, {20}));
    write_into(folder_ / "train/cat/a.png", plain_png(2, 2, {10}));
    write_into(folder_ / "train/ant/z.jpeg", jpeg_bytes(2, 2, Bytes(4, 30)));
    write_into(folder_ / "test/cat/t.JPG", jpeg_bytes(2, 2, Bytes(4, 40)));
  }

  Dataset load(std::uint32_t size = 0) const {
    return load_image_folder(folder_.path(), Which::both, size);
  }
  std::string refusal() const {
    return test::message_of<DataError>([&] { load(); });
  }

  test::ScratchFolder folder_;
};

TEST_F(Folder, LoadsClassesAndFilesByName) {
  write_into(folder_ / "train/cat/.hidden", "not an image");
  const Dataset dataset = load();
  EXPECT_THAT(dataset.class_names, ElementsAre("ant", "cat"));
  EXPECT_EQ(dataset.classes, 2U);
  EXPECT_EQ(dataset.train.shape, (SampleShape{1, 2, 2}));
  EXPECT_THAT(dataset.train.labels, ElementsAre(0, 1, 1));
  EXPECT_EQ(dataset.train.pixels, (Bytes{30, 30, 30, 30, 10, 10, 10, 10, 20, 20, 20, 20}));
  EXPECT_THAT(dataset.test.labels, ElementsAre(1));
  EXPECT_THAT(dataset.test.pixels, Each(40));
  EXPECT_THAT(dataset.mean, ElementsAre(FloatNear(20.0F / 255, 1e-6F)));
  EXPECT_THAT(dataset.standard_deviation, ElementsAre(FloatNear(8.164966F / 255, 1e-6F)));
}

TEST_F(Folder, PassesOverWhatFileManagersLeave) {
  const Dataset before = load();
  EXPECT_EQ(before.passed_over, 0U);
  for (const char* name : {"train/cat/Thumbs.db", "train/ant/desktop.ini", "test/cat/.nothing",
                           "train/Thumbs.db", "test/.DS_Store"}) {
    write_into(folder_ / name, "not an image");
  }
  const Dataset dataset = load();
  EXPECT_EQ(dataset.passed_over, 5U);
  EXPECT_EQ(dataset.train.pixels, before.train.pixels);
  EXPECT_EQ(dataset.test.pixels, before.test.pixels);
  EXPECT_THAT(dataset.class_names, ElementsAre("ant", "cat"));
}

TEST_F(Folder, TakesValWhereThereIsNoTest) {
  fs::rename(folder_ / "test", folder_ / "val");
  EXPECT_EQ(load().test.samples(), 1U);
  fs::remove_all(folder_ / "val");
  EXPECT_THAT(refusal(), HasSubstr("found neither test nor val"));
  fs::remove_all(folder_ / "train");
  EXPECT_THAT(refusal(), HasSubstr("found neither train nor train_images.npy"));
}

TEST_F(Folder, GivesAllImagesColoursWhereOneHasSome) {
  write_into(folder_ / "train/cat/c.png", plain_png(2, 2, {1, 2, 3}));
  const Dataset dataset = load();
  EXPECT_EQ(dataset.train.shape.channels, 3U);
  EXPECT_EQ(dataset.test.shape, dataset.train.shape);
  EXPECT_EQ(dataset.train.pixels.size(), 4 * 12U);
  EXPECT_EQ(Bytes(dataset.train.pixels.end() - 12, dataset.train.pixels.end()),
            (Bytes{1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3}));
  EXPECT_THAT(Bytes(dataset.train.pixels.begin(), dataset.train.pixels.begin() + 12), Each(30));
  EXPECT_THAT(dataset.test.pixels, Each(40));
  EXPECT_EQ(dataset.mean.size(), 3U);
  write_into(folder_ / "train/ant/a.png", plain_png(2, 2, {1, 2, 3}));  // becomes the first image
  EXPECT_EQ(load().train.pixels.size(), 5 * 12U);
}

TEST_F(Folder, ScalesImagesToOneSize) {
  write_into(folder_ / "train/cat/c.png", plain_png(6, 4, {50}));
  const Dataset dataset = load();
  EXPECT_EQ(dataset.train.shape, (SampleShape{1, 2, 2})) << "that of the first image";
  EXPECT_THAT(Bytes(dataset.train.pixels.end() - 4, dataset.train.pixels.end()), Each(50));
  EXPECT_EQ(load(5).train.shape, (SampleShape{1, 5, 5}));
  EXPECT_EQ(load(5).test.shape, (SampleShape{1, 5, 5}));
}

TEST_F(Folder, RefusesABadImageByItsPath) {
  write_into(folder_ / "train/cat/c.png", "nothing");
  EXPECT_THAT(refusal(), AllOf(HasSubstr((folder_ / "train/cat/c.png").string()),
                               HasSubstr("expected a PNG or JPEG image")));
}

TEST_F(Folder, ShowsTheFirstFaultsOfManyAndTheirNumber) {
  for (int i = 0; i < 23; ++i) {
    write_into(folder_ / fmt::format("train/cat/bad-{:02}.png", i), "nothing");
  }
  write_into(folder_ / "test/dog/d.png", plain_png(2, 2, {1}));
  LogCapture log;
  EXPECT_EQ(refusal(), fmt::format("{}: expected images without a fault, found 24 faults, of which "
                                   "the first 20 are logged above; mend or remove each",
                                   folder_.path().string()));
  const std::string lines = log.text();
  EXPECT_EQ(std::ranges::count(lines, '\n'), 20);
  EXPECT_THAT(lines, AllOf(HasSubstr("bad-18.png: expected a PNG or JPEG"),
                           HasSubstr("test/dog: expected a class of the training set"),
                           testing::Not(HasSubstr("bad-19.png"))));
}

TEST_F(Folder, RefusesWhatIsNoFile) {
  ASSERT_EQ(::mkfifo((folder_ / "train/cat/c.png").c_str(), 0600), 0);
  EXPECT_THAT(refusal(), HasSubstr("c.png: expected an image, .png, .jpg or .jpeg, found a pipe"));
  fs::remove(folder_ / "train/cat/c.png");
  fs::create_symlink("/dev/zero", folder_ / "train/cat/c.png");
  EXPECT_THAT(refusal(), HasSubstr("found a device"));
  fs::remove(folder_ / "train/cat/c.png");
  fs::create_symlink("nowhere", folder_ / "train/cat/c.png");
  EXPECT_THAT(refusal(), HasSubstr("found a link that leads nowhere"));
}

TEST_F(Folder, WarnsOfImagesOf16BitsThatBecomeNearlyBlack) {
  write_into(folder_ / "train/cat/c.png", test::png_of_16_bits({4'095, 0, 0, 0}));
  write_into(folder_ / "train/cat/d.png", test::png_of_16_bits({4'096, 0, 0, 0}));
  LogCapture log;
  load();
  const std::string lines = log.text();
  EXPECT_EQ(std::ranges::count(lines, '\n'), 1) << lines;
  EXPECT_THAT(lines, HasSubstr("train: 1 of 5 images have 16 bits a value and no value of 4096"));
}

TEST_F(Folder, RefusesWhatIsNoClassAndNoImage) {
  write_into(folder_ / "train/cat/notes.txt", "text");
  EXPECT_THAT(refusal(), HasSubstr("train/cat/notes.txt: expected an image, .png, .jpg or .jpeg"));
  fs::remove(folder_ / "train/cat/notes.txt");
  write_into(folder_ / "test/dog/d.png", plain_png(2, 2, {1}));
  EXPECT_THAT(refusal(), HasSubstr("test/dog: expected a class of the training set"));
  fs::remove_all(folder_ / "test/dog");
  fs::create_directory(folder_ / "train/bee");
  EXPECT_THAT(refusal(), HasSubstr("train/bee: expected images of a class"));
  fs::remove(folder_ / "train/bee");
  write_into(folder_ / "train/readme", "text");
  EXPECT_THAT(refusal(), HasSubstr("train/readme: expected a folder of the images of a class"));
}

TEST_F(Folder, IsADatasetWhoseNameIsAPath) {
  EXPECT_EQ(load_dataset(folder_.path().string() + "/", "", Which::both, 3).train.shape,
            (SampleShape{1, 3, 3}));
  EXPECT_FALSE(reads_files("./images"));
  EXPECT_THAT(test::message_of<DataError>([] { load_dataset("./not-there/", ""); }),
              AllOf(HasSubstr("./not-there/: expected a folder with train/CLASS/*.png"),
                    HasSubstr("found no such folder")));
  EXPECT_THAT(test::message_of<ConfigError>([] { load_dataset("synthetic", "", Which::both, 8); }),
              HasSubstr("an image size has no effect on synthetic"));
}

TEST(CheckSize, RefusesWhatTheMemoryCannotHold) {
  constexpr std::uint64_t gibibyte = 1U << 30U;
  EXPECT_NO_THROW(check_size("set", 1'024, {1, 1'024, 1'024}, gibibyte));
  EXPECT_EQ(test::message_of<DataError>([] {
              check_size("set", 2'048, {3, 1'024, 1'024}, gibibyte);
            }),
            "set: expected images that fit into 1.0 GiB, the memory of this machine, found 2048 of "
            "3x1024x1024, 6.0 GiB; use fewer images, or smaller ones");
}

}  // namespace
}  // namespace syncopate
