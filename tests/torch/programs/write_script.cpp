// Writes a TorchScript file with a linear classifier of 28×28 images, without Python.
//
//   syncopate_write_script FILE CLASSES LARGEST-WEIGHT
#include <torch/utils.h>

#include <cstdlib>

#include "tests/torch/script_files.hpp"

int main(int argc, char** argv) {
  if (argc != 4) {
    return EXIT_FAILURE;
  }
  syncopate::script_classifier(28 * 28, std::atoi(argv[2]), torch::kFloat32, std::atof(argv[3]))
      .save(argv[1]);
  return EXIT_SUCCESS;
}
