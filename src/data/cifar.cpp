#include "data/cifar.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <system_error>
#include <utility>

#include "base/errors.hpp"
#include "base/file.hpp"
#include "data/idx.hpp"
#include "data/image_set.hpp"

namespace syncopate {
namespace {

namespace fs = std::filesystem;

constexpr SampleShape cifar_shape{3, 32, 32};

struct CifarKind {
  std::string title;
  std::uint32_t classes;
  std::size_t label_bytes;          ///< per image; the last one is the label
  std::vector<std::uint32_t> most;  ///< exclusive upper bounds of these bytes
  std::vector<std::string> train;
  std::string test;
  std::string folder;  ///< in the archive
  std::string archive;
};

const std::array<std::string, 2> names_of_cifars{"cifar10", "cifar100"};

const std::array<CifarKind, 2> cifar_kinds{
    CifarKind{.title = "CIFAR-10",
              .classes = 10,
              .label_bytes = 1,
              .most = {10},
              .train = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                        "data_batch_4.bin", "data_batch_5.bin"},
              .test = "test_batch.bin",
              .folder = "cifar-10-batches-bin",
              .archive = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"},
    CifarKind{.title = "CIFAR-100",
              .classes = 100,
              .label_bytes = 2,
              .most = {20, 100},
              .train = {"train.bin"},
              .test = "test.bin",
              .folder = "cifar-100-binary",
              .archive = "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz"}};

std::size_t cifar_index(const std::string& name) {
  return static_cast<std::size_t>(std::ranges::find(names_of_cifars, name) -
                                  names_of_cifars.begin());
}

std::string cifar_remedy(const CifarKind& kind) {
  return fmt::format("download {}, unpack it, and pass its folder {} as --data-dir", kind.archive,
                     kind.folder);
}

bool file_exists(const fs::path& path) {
  std::error_code failure;
  return fs::exists(path, failure);
}

/// `chosen`, or the archive's folder in it.
fs::path cifar_folder(const CifarKind& kind, const fs::path& chosen) {
  if (chosen.empty()) {
    throw DataError(
        fmt::format("{}: expected a folder, found none; {}", kind.title, cifar_remedy(kind)));
  }
  const bool unpacked_here = !file_exists(chosen / kind.test) && file_exists(chosen / kind.folder);
  return unpacked_here ? chosen / kind.folder : chosen;
}

/// Refuses a missing file. If the folder holds the other dataset, the error names it.
void expect_file(const CifarKind& kind, const fs::path& path) {
  if (file_exists(path)) {
    return;
  }
  for (std::size_t other = 0; other < cifar_kinds.size(); ++other) {
    const bool holds_other = cifar_kinds[other].title != kind.title &&
                             file_exists(path.parent_path() / cifar_kinds[other].train.front());
    if (holds_other) {
      refuse(path,
             {fmt::format("this file of {}", kind.title),
              fmt::format("{} of {}", cifar_kinds[other].train.front(), cifar_kinds[other].title),
              fmt::format("choose --data {}", names_of_cifars[other])});
    }
  }
  refuse(path,
         {fmt::format("this file of {}, binary version", kind.title),
          file_exists(path.parent_path()) ? "no such file" : "no such folder", cifar_remedy(kind)});
}

/// The number of images in a file. Errors: DataError if its length is no multiple of an image's.
std::size_t count_images(const CifarKind& kind, const fs::path& path) {
  const std::size_t record = kind.label_bytes + cifar_shape.values();
  std::error_code failure;
  const auto bytes = fs::file_size(path, failure);
  if (failure) {
    refuse(path, {fmt::format("a file of {}", kind.title), failure.message(),
                  "check the path and its permissions"});
  }
  if (bytes == 0 || bytes % record != 0) {
    refuse(path,
           {fmt::format("a multiple of {} bytes, the length of an image of {}", record, kind.title),
            fmt::format("{}", bytes), "check that the file is whole and of this dataset"});
  }
  return bytes / record;
}

void check_record(const CifarKind& kind, const fs::path& path, std::string_view record,
                  std::size_t image) {
  for (std::size_t byte = 0; byte < kind.label_bytes; ++byte) {
    const auto label = static_cast<std::uint8_t>(record[byte]);
    if (label >= kind.most[byte]) {
      const char* const which =
          kind.label_bytes == 1 ? "labels" : (byte == 0 ? "coarse labels" : "fine labels");
      refuse(path, {fmt::format("{} from 0 to {}", which, kind.most[byte] - 1),
                    fmt::format("{} at image {}", label, image), fetch_again});
    }
  }
}

void append_file(const CifarKind& kind, const fs::path& path, ImageSet& set) {
  const std::size_t length = kind.label_bytes + cifar_shape.values();
  const std::string bytes = read_file(path);
  for (std::size_t begin = 0; begin + length <= bytes.size(); begin += length) {
    const std::string_view record(bytes.data() + begin, length);
    check_record(kind, path, record, begin / length);
    set.labels.push_back(static_cast<std::uint8_t>(record[kind.label_bytes - 1]));
    set.pixels.insert(set.pixels.end(), record.begin() + static_cast<long>(kind.label_bytes),
                      record.end());
  }
}

ImageSet load_files(const CifarKind& kind, const fs::path& folder,
                    const std::vector<std::string>& files) {
  std::uint64_t samples = 0;
  for (const std::string& file : files) {
    expect_file(kind, folder / file);
    samples += count_images(kind, folder / file);
  }
  check_size(folder, samples, cifar_shape);
  ImageSet set{cifar_shape, {}, {}};
  set.pixels.reserve(samples * cifar_shape.values());
  for (const std::string& file : files) {
    append_file(kind, folder / file, set);
  }
  return set;
}

}  // namespace

std::span<const std::string> cifar_names() {
  return names_of_cifars;
}

Dataset load_cifar(const std::string& name, const fs::path& chosen, Which which) {
  const CifarKind& kind = cifar_kinds.at(cifar_index(name));
  const fs::path folder = cifar_folder(kind, chosen);
  Dataset dataset{.name = name,
                  .classes = kind.classes,
                  .mean = {},
                  .standard_deviation = {},
                  .train = load_files(kind, folder, kind.train),
                  .test = load_files(kind, folder, {kind.test})};
  measure_channels(dataset);
  keep_only(which, dataset);
  return dataset;
}

std::vector<DataFile> cifar_files(const std::string& name, const fs::path& chosen) {
  const CifarKind& kind = cifar_kinds.at(cifar_index(name));
  const fs::path folder = cifar_folder(kind, chosen);
  std::vector<std::string> names = kind.train;
  names.push_back(kind.test);
  std::vector<DataFile> files;
  for (const std::string& file : names) {
    const std::string bytes = read_file(folder / file);
    const auto sum =
        ::crc32_z(0, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
    files.push_back(
        {.path = folder / file, .bytes = bytes.size(), .crc32 = static_cast<std::uint32_t>(sum)});
  }
  return files;
}

}  // namespace syncopate
