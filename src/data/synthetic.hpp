#pragma once

#include "data/dataset.hpp"

namespace syncopate {

/// Ten classes of 28×28 images that need no files: a few soft blobs per class, shifted, dimmed and
/// covered with noise sample by sample. 10,000 training and 2,000 test samples, classes equally
/// often, always the same. A nearest-mean classifier gets about eight in ten right.
Dataset make_synthetic(Which which);

}  // namespace syncopate
