#pragma once

#include <string>
#include <vector>

namespace syncopate::cli {

/// The appearance of a scheme in all figures, in colour and in greyscale print.
struct Look {
  std::string colour = "#000000";
  std::string dash = "solid";  ///< `dashtype`: solid, or the lengths of strokes and gaps
  int marker = 7;              ///< `pointtype`
  int pattern = 3;             ///< of filled bars
};

/// The looks of groups with these labels, in their order. A known scheme has the same look in every
/// figure; the baselines (`ssgd`, `local`, only the fast devices, the upper bound) are grey. A
/// label with options, such as `esync:pacing=paper`, has the look of its scheme if that is free,
/// else its colour with another dash, marker and pattern. Other labels take the remaining looks.
///
/// The colours of schemes differ to people with any kind of colour blindness. No two of up to 84
/// looks have both dash and marker in common.
std::vector<Look> looks_of(const std::vector<std::string>& labels);

}  // namespace syncopate::cli
