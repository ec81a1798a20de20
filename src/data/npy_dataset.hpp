#pragma once

#include <filesystem>

#include "data/dataset.hpp"

namespace syncopate {

/// True if a folder holds the first file of `load_npy_dataset`.
bool holds_npy_dataset(const std::filesystem::path& folder);

/// Loads the arrays `train_images.npy`, `train_labels.npy`, `test_images.npy` and `test_labels.npy`
/// of a folder, and `train_weights.npy` if it exists.
///
/// Images:  uint8, of shape [N, H, W]; of [N, C, H, W] where the second size is at most 4; else of
///          [N, H, W, C] where the last one is at most 4.
/// Labels:  any whole numbers from 0 on, of shape [N] or [N, 1]. The largest one of the training
///          set decides the number of classes.
/// Weights: float32 or float64, of shape [N], of training samples in the loss: finite, from 0 on,
///          and not all 0.
/// Errors:  DataError, one line which names the file, if one is missing, damaged, of another type,
///          shape or count than these, or has a value out of range.
Dataset load_npy_dataset(const std::filesystem::path& folder, Which which = Which::both);

}  // namespace syncopate
