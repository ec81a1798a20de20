#include "cli/bench/device_profiles.hpp"
#include "cli/command.hpp"
#include "cli/option_readers.hpp"
#include "spec/networks.hpp"

namespace syncopate::cli {
namespace {

constexpr const char* profile_examples =
    R"(Each device trains by itself: the CPU with --threads threads, and each CUDA device that
libtorch sees. The CPU's entry counts one device for every --threads cores.

Examples:
  syncopate profile --network resnet18-v1 --out mine.toml
  ssh other syncopate profile --network resnet18-v1 >> mine.toml
  syncopate train --network resnet18-v1 --virtual-time --cluster mine.toml)";

ProfileCommand profile_command_of(const CLI::App& app) {
  ProfileCommand command;
  const auto whole = [&](const char* option, std::uint64_t most, auto& into) {
    if (const auto text = given(app, option)) {
      into =
          static_cast<std::uint32_t>(value_of(option, [&] { return number_of(*text, 1, most); }));
    }
  };
  if (const auto name = given(app, "--network")) {
    command.network = value_of("--network", [&] { return choice_of(*name, network_names()); });
  }
  whole("--batch-size", 65'536, command.batch_size);
  whole("--image-size", 4096, command.image_size);
  whole("--threads", 64, command.threads);
  if (const auto text = given(app, "--seconds")) {
    command.effort.seconds = value_of("--seconds", [&] { return seconds_in(*text); });
  }
  command.out = given(app, "--out").value_or("");
  if (command.out == "-") {
    command.out.clear();
  }
  command.add = app.count("--add") > 0;
  if (command.add && command.out.empty()) {
    throw ConfigError("--add needs --out, the cluster file to which it adds devices");
  }
  return command;
}

}  // namespace

Command add_profile(CLI::App& root, const Handlers& handlers) {
  CLI::App* app = root.add_subcommand(
      "profile", "Measure the devices of this machine, and write them as a cluster file.");
  const auto add = [app](const char* name, const char* value, const char* help) {
    add_value(*app, name, value, help)->group("Measurement");
  };
  add("network", "NAME", "the model, see syncopate networks [lenet5]");
  add("batch-size", "N", "samples per step [64]");
  add("image-size", "N", "side of the images [28, or the least that the network takes]");
  add("threads", "N", "CPU threads of a device [1]");
  add("seconds", "S", "time of each measurement [3]");
  add_value(*app, "out", "FILE", "the cluster file to write [standard output]")->group("Outputs");
  add_switch(*app, "add", "add the devices to those that the file has")->group("Outputs");
  app->footer(profile_examples);
  return {app, [app, &handlers] { return handlers.profile(profile_command_of(*app)); }};
}

}  // namespace syncopate::cli
