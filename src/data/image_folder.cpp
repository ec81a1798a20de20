#include "data/image_folder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <limits>
#include <string>
#include <system_error>

#include "base/log.hpp"
#include "data/idx.hpp"
#include "data/image_file.hpp"
#include "data/image_set.hpp"

namespace syncopate {
namespace {

namespace fs = std::filesystem;

constexpr const char* expected_content =
    "a folder with train/CLASS/*.png or *.jpg and test/CLASS/* or val/CLASS/*, or with "
    "train_images.npy, train_labels.npy, test_images.npy and test_labels.npy";

std::string in_lower_case(std::string name) {
  std::ranges::transform(name, name.begin(), [](unsigned char byte) { return std::tolower(byte); });
  return name;
}

/// What file managers leave in folders of images.
bool is_passed_over(const fs::path& path) {
  const std::string name = in_lower_case(path.filename().string());
  return name.starts_with('.') || name == "thumbs.db" || name == "desktop.ini";
}

/// The entries of a folder by name, but those that are `passed_over`, which are counted. Errors:
/// DataError.
std::vector<fs::path> entries_by_name(const fs::path& folder, std::uint64_t& passed_over) {
  std::error_code failure;
  fs::directory_iterator entry(folder, failure);
  std::vector<fs::path> paths;
  for (; !failure && entry != fs::directory_iterator(); entry.increment(failure)) {
    if (is_passed_over(entry->path())) {
      ++passed_over;
    } else {
      paths.push_back(entry->path());
    }
  }
  if (failure) {
    refuse(folder, {"a folder that can be read", failure.message(), "check its permissions"});
  }
  std::ranges::sort(paths, {}, [](const fs::path& path) { return path.filename().native(); });
  return paths;
}

/// The class folders of a set. Errors: DataError, where it has none or something else.
std::vector<fs::path> class_folders(const fs::path& set, std::uint64_t& passed_over) {
  std::vector<fs::path> folders = entries_by_name(set, passed_over);
  for (const fs::path& path : folders) {
    if (std::error_code failure; !fs::is_directory(path, failure)) {
      refuse(path, {"a folder of the images of a class", "a file",
                    "move it into the folder of its class, or remove it"});
    }
  }
  constexpr std::size_t most_classes = std::numeric_limits<Label>::max() + std::size_t{1};
  if (folders.empty() || folders.size() > most_classes) {
    refuse(set, {fmt::format("1 to {} class folders", most_classes),
                 fmt::format("{}", folders.size()), "put each class into a folder of its own"});
  }
  return folders;
}

bool is_image_name(const fs::path& path) {
  const std::string extension = in_lower_case(path.extension().string());
  constexpr std::array<std::string_view, 3> known{".png", ".jpg", ".jpeg"};
  return std::ranges::find(known, extension) != known.end();
}

/// The images of a class. Errors: DataError, where it has none or something else.
std::vector<fs::path> images_in(const fs::path& folder, std::uint64_t& passed_over) {
  std::vector<fs::path> images = entries_by_name(folder, passed_over);
  for (const fs::path& path : images) {
    std::error_code failure;
    if (!is_image_name(path) || fs::is_directory(path, failure)) {
      refuse(path, {"an image, .png, .jpg or .jpeg",
                    fs::is_directory(path, failure) ? "a folder" : "another file",
                    "convert it or remove it"});
    }
  }
  if (images.empty()) {
    refuse(folder,
           {"images of a class, .png, .jpg or .jpeg", "none", "add some, or remove the folder"});
  }
  return images;
}

struct LabelledFile {
  fs::path path;
  Label label = 0;
};

std::string name_of_folder(const fs::path& path) {
  return path.filename().string();
}

/// The images of a set. Errors: DataError, for a class that `names` does not have.
std::vector<LabelledFile> list_images(const fs::path& set, const std::vector<std::string>& names,
                                      std::uint64_t& passed_over) {
  std::vector<LabelledFile> files;
  for (const fs::path& folder : class_folders(set, passed_over)) {
    const auto name = std::ranges::lower_bound(names, name_of_folder(folder));
    if (name == names.end() || *name != name_of_folder(folder)) {
      refuse(folder,
             {"a class of the training set", "another one",
              fmt::format("add it to {}, or remove it", (set.parent_path() / "train").string())});
    }
    for (fs::path& path : images_in(folder, passed_over)) {
      files.push_back({std::move(path), static_cast<Label>(name - names.begin())});
    }
  }
  return files;
}

/// Collects images into sets of one shape.
class ImageCollector {
 public:
  explicit ImageCollector(std::uint32_t image_size) : height_(image_size), width_(image_size) {}

  ImageSet load(const fs::path& folder, const std::vector<LabelledFile>& files) {
    ImageSet set;
    for (const LabelledFile& file : files) {
      append(read_image(file.path), folder, files.size(), set);
      set.labels.push_back(file.label);
      report(folder, set.samples(), files.size());
    }
    return set;
  }

 private:
  static void report(const fs::path& folder, std::size_t done, std::size_t all) {
    constexpr std::size_t period = 10'000;
    if (done % period == 0) {
      log::info("{}: {} of {} images loaded", folder.string(), done, all);
    }
  }

  /// The first image of all decides the size, the first one of a set its channels.
  void append(Image image, const fs::path& folder, std::size_t samples, ImageSet& set) {
    if (height_ == 0) {
      height_ = image.shape.height;
      width_ = image.shape.width;
    }
    image = scaled(image, height_, width_);
    if (set.labels.empty()) {
      set.shape = image.shape;
      check_size(folder, samples, set.shape);
      set.pixels.reserve(samples * set.shape.values());
    }
    add_colour(set, image, folder, samples);
    set.pixels.insert(set.pixels.end(), image.pixels.begin(), image.pixels.end());
  }

  /// Gives image and set the same channels: three, if one of them has three.
  void add_colour(ImageSet& set, Image& image, const fs::path& folder, std::size_t samples) const {
    const std::size_t plane = std::size_t{height_} * width_;
    if (image.shape.channels < set.shape.channels) {
      image.pixels = in_colour(image.pixels, plane);
    } else if (image.shape.channels > set.shape.channels) {
      check_size(folder, samples, image.shape);
      set.pixels = in_colour(set.pixels, plane);
      set.shape = image.shape;
    }
  }

  std::uint32_t height_;
  std::uint32_t width_;
};

/// Where one set has colours, the other gets them too.
void unify_channels(ImageSet& one, ImageSet& other) {
  ImageSet& grey = one.shape.channels < other.shape.channels ? one : other;
  const ImageSet& coloured = &grey == &one ? other : one;
  if (grey.shape.channels < coloured.shape.channels) {
    grey.pixels = in_colour(grey.pixels, grey.shape.values());
    grey.shape = coloured.shape;
  }
}

/// The folder of the test images. Errors: DataError, where a set is missing.
fs::path test_folder(const fs::path& folder) {
  std::error_code failure;
  const bool complete = fs::is_directory(folder / "train", failure);
  for (const char* name : {"test", "val"}) {
    if (complete && fs::is_directory(folder / name, failure)) {
      return folder / name;
    }
  }
  const char* const found = !fs::is_directory(folder, failure) ? "no such folder"
                            : complete                         ? "neither test nor val"
                                       : "neither train nor train_images.npy";
  refuse(folder, {expected_content, found, "see docs/data.md for the formats"});
}

}  // namespace

Dataset load_image_folder(const fs::path& folder, Which which, std::uint32_t image_size) {
  const fs::path test = test_folder(folder);
  Dataset dataset;
  dataset.name = folder.string();
  std::uint64_t counted_below = 0;
  for (const fs::path& path : class_folders(folder / "train", counted_below)) {
    dataset.class_names.push_back(name_of_folder(path));
  }
  dataset.classes = static_cast<std::uint32_t>(dataset.class_names.size());
  const auto train_files = list_images(folder / "train", dataset.class_names, dataset.passed_over);
  const auto test_files = list_images(test, dataset.class_names, dataset.passed_over);
  ImageCollector collector(image_size);
  dataset.train = collector.load(folder / "train", train_files);
  dataset.test = collector.load(test, test_files);
  unify_channels(dataset.train, dataset.test);
  measure_channels(dataset);
  keep_only(which, dataset);
  return dataset;
}

}  // namespace syncopate
