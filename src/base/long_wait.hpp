#pragma once

#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/time.hpp"

namespace syncopate {

/// A wait of a member for others, as it is reported.
struct LongWait {
  std::vector<Rank> ranks;  ///< of the job, that have not come; empty: no worker is waited for
  std::string operation;    ///< "allgather"
  Duration waited{};
  Duration usual{};  ///< of such waits
  Duration limit{};  ///< the least that one may take where no worker computes
};

}  // namespace syncopate
