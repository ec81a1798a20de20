// A fuzzer of one target by libFuzzer:
//
//   SYNCOPATE_FUZZ_TARGET=NAME syncopate_fuzz [LIBFUZZER-OPTION...] CORPUS...
#include <algorithm>
#include <cstdlib>

#include "tests/fuzz/targets.hpp"

namespace {

const syncopate::fuzz::Target* chosen = nullptr;

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* /*count*/, char*** /*arguments*/) {
  const char* name = std::getenv("SYNCOPATE_FUZZ_TARGET");
  const auto targets = syncopate::fuzz::all_targets();
  const auto found = std::ranges::find(targets, std::string_view(name == nullptr ? "" : name),
                                       &syncopate::fuzz::Target::name);
  if (found == targets.end()) {
    throw syncopate::ConfigError(
        "SYNCOPATE_FUZZ_TARGET: expected a target of tests/fuzz/targets.inc");
  }
  chosen = &*found;
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  chosen->run({data, size});
  return 0;
}
