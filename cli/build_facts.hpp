#pragma once

#include <string_view>

namespace syncopate::cli {

/// Facts about this build. CMake generates the source file that defines them.
struct BuildFacts {
  std::string_view version;
  std::string_view libtorch;  ///< its version; empty in a program that was built without libtorch
  std::string_view build_type;
};

extern const BuildFacts build_facts;

}  // namespace syncopate::cli
