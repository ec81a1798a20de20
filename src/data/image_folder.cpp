#include "data/image_folder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <functional>
#include <limits>
#include <string>
#include <system_error>
#include <utility>

#include "base/errors.hpp"
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

/// True for files that file managers leave in folders of images.
bool is_passed_over(const fs::path& path) {
  const std::string name = in_lower_case(path.filename().string());
  return name.starts_with('.') || name == "thumbs.db" || name == "desktop.ini";
}

/// The entries of a folder, in the order of names, without those that `is_passed_over`, which are
/// counted. Errors: DataError.
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

/// Collects the faults in a folder of images, so that one run shows all of them.
class Faults {
 public:
  explicit Faults(const fs::path& folder) : folder_(folder) {}

  /// Calls `read`. Returns false if it throws a DataError, which is kept.
  bool passes(const std::function<void()>& read) {
    try {
      read();
      return true;
    } catch (const DataError& error) {
      if (found_.size() < most_shown) {
        found_.emplace_back(error.what());
      }
      ++count_;
      return false;
    }
  }

  /// Throws a DataError if there was any fault: the only one, or the number of all, after it has
  /// logged the first ones.
  void refuse_any() const {
    if (count_ == 1) {
      throw DataError(found_.front());
    }
    if (count_ > 0) {
      for (const std::string& fault : found_) {
        log::warn("{}", fault);
      }
      refuse(folder_, {"images without a fault",
                       fmt::format("{} faults, of which the first {} are logged above", count_,
                                   found_.size()),
                       "mend or remove each"});
    }
  }

 private:
  static constexpr std::size_t most_shown = 20;

  fs::path folder_;
  std::vector<std::string> found_;  ///< the first ones
  std::uint64_t count_ = 0;
};

/// Describes what is found at a path, for an error.
const char* kind_of(const fs::path& path) {
  std::error_code failure;
  switch (fs::status(path, failure).type()) {
    case fs::file_type::directory: return "a folder";
    case fs::file_type::regular: return "another file";
    case fs::file_type::not_found: return "a link that leads nowhere";
    case fs::file_type::fifo: return "a pipe";
    case fs::file_type::socket: return "a socket";
    case fs::file_type::block:
    case fs::file_type::character: return "a device";
    default: return "something that cannot be read";
  }
}

bool is_of_type(const fs::path& path, fs::file_type type) {
  std::error_code failure;
  return fs::status(path, failure).type() == type;
}

/// The class folders of a set. Errors: DataError if it has none or too many.
std::vector<fs::path> class_folders(const fs::path& set, std::uint64_t& passed_over,
                                    Faults& faults) {
  std::vector<fs::path> folders = entries_by_name(set, passed_over);
  std::erase_if(folders, [&](const fs::path& path) {
    return !faults.passes([&] {
      if (!is_of_type(path, fs::file_type::directory)) {
        refuse(path, {"a folder of the images of a class", kind_of(path),
                      "move it into the folder of its class, or remove it"});
      }
    });
  });
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

/// The images of a class. Errors: DataError if it has none.
std::vector<fs::path> images_in(const fs::path& folder, std::uint64_t& passed_over,
                                Faults& faults) {
  std::vector<fs::path> images = entries_by_name(folder, passed_over);
  const bool is_empty = images.empty();
  std::erase_if(images, [&](const fs::path& path) {
    return !faults.passes([&] {
      if (!is_image_name(path) || !is_of_type(path, fs::file_type::regular)) {
        refuse(path, {"an image, .png, .jpg or .jpeg", kind_of(path), "convert it or remove it"});
      }
    });
  });
  if (is_empty) {
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

/// The images of a set, whose classes are among `names`.
std::vector<LabelledFile> list_images(const fs::path& set, const std::vector<std::string>& names,
                                      std::uint64_t& passed_over, Faults& faults) {
  std::vector<LabelledFile> files;
  for (const fs::path& folder : class_folders(set, passed_over, faults)) {
    faults.passes([&] {
      const auto name = std::ranges::lower_bound(names, name_of_folder(folder));
      if (name == names.end() || *name != name_of_folder(folder)) {
        refuse(folder,
               {"a class of the training set", "another one",
                fmt::format("add it to {}, or remove it", (set.parent_path() / "train").string())});
      }
      for (fs::path& path : images_in(folder, passed_over, faults)) {
        files.push_back({std::move(path), static_cast<Label>(name - names.begin())});
      }
    });
  }
  return files;
}

/// Collects images into sets of one shape.
class ImageCollector {
 public:
  ImageCollector(std::uint32_t image_size, Faults& faults)
      : height_(image_size), width_(image_size), faults_(faults) {}

  ImageSet load(const fs::path& folder, const std::vector<LabelledFile>& files) {
    ImageSet set;
    std::size_t dark = 0;
    std::size_t done = 0;
    for (const LabelledFile& file : files) {
      Image image;
      if (faults_.passes([&] { image = read_image(file.path); })) {
        dark += image.is_dark_of_16_bits ? 1 : 0;
        append(std::move(image), folder, files.size(), set);
        set.labels.push_back(file.label);
      }
      report(folder, ++done, files.size());
    }
    if (dark > 0) {
      log::warn(
          "{}: {} of {} images have 16 bits a value and no value of {} or more; the upper 8 bits, "
          "which are used, make "
          "them nearly black: multiply their values",
          folder.string(), dark, files.size(), darkest_of_16_bits << 8U);
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
  Faults& faults_;
};

/// If only one set has three channels, gives them to the other, too.
void unify_channels(ImageSet& one, ImageSet& other) {
  ImageSet& grey = one.shape.channels < other.shape.channels ? one : other;
  const ImageSet& coloured = &grey == &one ? other : one;
  if (grey.shape.channels < coloured.shape.channels) {
    grey.pixels = in_colour(grey.pixels, grey.shape.values());
    grey.shape = coloured.shape;
  }
}

/// The folder of the test images. Errors: DataError if a set is missing.
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
  refuse(folder, {expected_content, found, "see docs/guides/data.md for the formats"});
}

}  // namespace

Dataset load_image_folder(const fs::path& folder, Which which, std::uint32_t image_size) {
  const fs::path test = test_folder(folder);
  Dataset dataset;
  dataset.name = folder.string();
  std::uint64_t counted_below = 0;
  Faults found_below(folder);
  for (const fs::path& path : class_folders(folder / "train", counted_below, found_below)) {
    dataset.class_names.push_back(name_of_folder(path));
  }
  dataset.classes = static_cast<std::uint32_t>(dataset.class_names.size());
  Faults faults(folder);
  const auto train_files =
      list_images(folder / "train", dataset.class_names, dataset.passed_over, faults);
  const auto test_files = list_images(test, dataset.class_names, dataset.passed_over, faults);
  ImageCollector collector(image_size, faults);
  dataset.train = collector.load(folder / "train", train_files);
  dataset.test = collector.load(test, test_files);
  faults.refuse_any();
  unify_channels(dataset.train, dataset.test);
  measure_channels(dataset);
  keep_only(which, dataset);
  return dataset;
}

}  // namespace syncopate
