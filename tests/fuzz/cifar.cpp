#include "data/cifar.hpp"

#include <cstdlib>
#include <filesystem>

#include "tests/fuzz/targets.hpp"

namespace syncopate::fuzz {

/// The test file of CIFAR-10 or, by the first byte, of CIFAR-100.
void fuzz_cifar(Input input) {
  const bool fine = take_byte(input) % 2 == 1;
  const InputFile file(input);
  char name[] = "/tmp/syncopate-fuzz-XXXXXX";
  const std::filesystem::path folder = mkdtemp(name);
  std::filesystem::create_symlink(file.path(), folder / (fine ? "test.bin" : "test_batch.bin"));
  accept_or_refuse([&] {
    const Dataset dataset = load_cifar(fine ? "cifar100" : "cifar10", folder, Which::test);
    require(dataset.test.samples() == input.size() / (fine ? 3074 : 3073), "all images are read");
  });
  std::filesystem::remove_all(folder);
}

}  // namespace syncopate::fuzz
