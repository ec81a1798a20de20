#include "device/cluster_file.hpp"
#include "spec/config_file.hpp"
#include "tests/fuzz/targets.hpp"

namespace syncopate::fuzz {

/// A configuration or, by the first byte, a cluster file, both in TOML.
void fuzz_config(Input input) {
  const bool cluster = take_byte(input) % 2 == 1;
  accept_or_refuse([&] {
    if (cluster) {
      require(!parse_cluster_file(text_of(input), "cluster.toml").devices.empty(),
              "a cluster has a device");
      return;
    }
    const std::string once = to_toml(parse_config(text_of(input), "config.toml"));
    require(to_toml(parse_config(once, "again.toml")) == once, "a configuration is read back");
  });
}

}  // namespace syncopate::fuzz
