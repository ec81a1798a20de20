#pragma once

#include <string_view>

namespace syncopate::cli {

/// What CMake knows of this program; it writes the source.
struct BuildFacts {
  std::string_view version;
  std::string_view libtorch;  ///< its version; empty in a program that was built without libtorch
  std::string_view build_type;
};

extern const BuildFacts build_facts;

}  // namespace syncopate::cli
