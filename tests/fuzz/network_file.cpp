#include "spec/network_file.hpp"

#include "tests/fuzz/targets.hpp"

namespace syncopate::fuzz {

/// A TorchScript file, as the coordinator reads it without libtorch.
void fuzz_network_file(Input input) {
  const InputFile file(input);
  const std::string path = file.path();
  accept_or_refuse(
      [&] { require(network_checksum(path).size() == 8, "a checksum has eight digits"); });
  NetworkSpec network;
  network.file = path;
  accept_or_refuse([&] { has_batch_norm(network); });
}

}  // namespace syncopate::fuzz
