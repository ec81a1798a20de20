#include "data/exif.hpp"
#include "data/image_file.hpp"
#include "tests/fuzz/targets.hpp"

namespace syncopate::fuzz {

/// A PNG or a JPEG image.
void fuzz_image(Input input) {
  const unsigned orientation = exif_orientation(input);
  require(orientation >= 1 && orientation <= 8, "an orientation is 1 to 8");
  accept_or_refuse([&] {
    const Image image = decode_image("image", input);
    require(image.pixels.size() == image.shape.values(), "an image has all its pixels");
    require(image.shape.channels == 1 || image.shape.channels == 3, "an image is grey or coloured");
  });
}

}  // namespace syncopate::fuzz
