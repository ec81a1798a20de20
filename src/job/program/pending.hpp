#pragma once

#include <optional>

#include "base/ids.hpp"
#include "base/time.hpp"

namespace syncopate {

/// Something that goes on while its caller does something else.
///
/// Thread: any.
class Pending {
 public:
  virtual ~Pending() = default;

  /// Returns at once.
  virtual bool done() = 0;
  /// Blocks until it has ended. Errors: the error that ended it, in every call.
  virtual void wait() = 0;
  /// The same, but no longer than `limit`. False: it has not ended.
  virtual bool wait_for(Duration limit) = 0;
  /// Of a receive from any program that has ended: whose bytes came. Empty for everything else.
  virtual std::optional<Rank> source() { return std::nullopt; }
};

}  // namespace syncopate
