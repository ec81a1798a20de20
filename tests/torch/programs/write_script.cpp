// Writes a TorchScript file for 28×28 images, without Python: a linear classifier or a smooth
// perceptron.
//
//   syncopate_write_script FILE linear CLASSES LARGEST-WEIGHT
//   syncopate_write_script FILE perceptron CLASSES HIDDEN
#include <torch/utils.h>

#include <cstdlib>
#include <string_view>

#include "tests/torch/script_files.hpp"

int main(int argc, char** argv) {
  if (argc != 5) {
    return EXIT_FAILURE;
  }
  const int classes = std::atoi(argv[3]);
  const bool linear = std::string_view(argv[2]) == "linear";
  const torch::jit::Module script =
      linear ? syncopate::script_classifier(28 * 28, classes, torch::kFloat32, std::atof(argv[4]))
             : syncopate::script_perceptron(28 * 28, std::atoi(argv[4]), classes);
  script.save(argv[1]);
  return EXIT_SUCCESS;
}
