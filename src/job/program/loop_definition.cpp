#include "job/program/loop_definition.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/errors.hpp"

namespace syncopate {
namespace {

/// The first difference of two definitions, in the words of worker `rank`.
std::string difference(std::uint32_t rank, const LoopDefinition& own, const LoopDefinition& first) {
  const auto text = [](const GivenOptions& options, const std::string& name) {
    const auto found = options.find(name);
    return found == options.end() ? std::string("not set") : found->second;
  };
  GivenOptions all = first.options;
  all.insert(own.options.begin(), own.options.end());
  for (const auto& [name, value] : all) {
    if (text(own.options, name) != text(first.options, name)) {
      return fmt::format("{} is {} in the program of worker {}, but {} in that of worker 0", name,
                         text(own.options, name), rank, text(first.options, name));
    }
  }
  const bool of_data = own.model.samples != first.model.samples;
  return fmt::format("the {} of worker {} has {} {}, but that of worker 0 has {}",
                     of_data ? "dataset" : "module", rank,
                     of_data ? own.model.samples : own.model.parameters + own.model.buffers,
                     of_data ? "samples" : "values",
                     of_data ? first.model.samples : first.model.parameters + first.model.buffers);
}

}  // namespace

wire::Definition to_wire(const LoopDefinition& definition) {
  wire::Definition message;
  for (const auto& [name, text] : definition.options) {
    (*message.mutable_options())[name] = text;
  }
  message.set_parameters(definition.model.parameters);
  message.set_buffers(definition.model.buffers);
  message.set_samples(definition.model.samples);
  return message;
}

LoopDefinition definition_of(const wire::Definition& definition) {
  GivenOptions options;
  for (const auto& option : definition.options()) {
    options.emplace(option.first, option.second);
  }
  return {.options = std::move(options),
          .model = {.parameters = definition.parameters(),
                    .buffers = definition.buffers(),
                    .samples = definition.samples()}};
}

/// The run folder is on the host of the coordinator, whose user may be the only one to name it.
void expect_same(std::uint32_t rank, const LoopDefinition& own, const LoopDefinition& first) {
  LoopDefinition expected = first;
  if (!own.options.contains("run-dir")) {
    expected.options.erase("run-dir");
  }
  if (own != expected) {
    throw ConfigError(
        fmt::format("{}; every program of a job trains the same", difference(rank, own, expected)));
  }
}

}  // namespace syncopate
