#include <fmt/format.h>

#include "base/errors.hpp"
#include "collective/native_reducer.hpp"

namespace syncopate {

const ReducerSpec& torch_reducer();

namespace {

NativeAllreduce& native_of(const Group& group, NativeAllreduce* of_program) {
  if (of_program == nullptr) {
    throw ConfigError(
        "--aggregate torch needs a process group of torch.distributed, which the program hands to "
        "its optimizer; choose another aggregate or auto");
  }
  if (of_program->size() != group.size()) {
    throw ConfigError(
        fmt::format("--aggregate torch needs a process group of the {} workers that reduce with "
                    "each other, found one of {} ranks",
                    group.size(), of_program->size()));
  }
  return *of_program;
}

}  // namespace

/// The allreduce of a process group that the program has, such as one of torch.distributed, which
/// knows the network between the hosts. Only on request. Workers of one host share memory first.
const ReducerSpec& torch_reducer() {
  static const ReducerSpec spec{
      .name = "torch",
      .among_hosts = true,
      .of_program = true,
      .make = [](Group& group, const ReducerContext& context) -> std::unique_ptr<Reducer> {
        return std::make_unique<NativeReducer>(group, native_of(group, context.of_program));
      }};
  return spec;
}

}  // namespace syncopate
