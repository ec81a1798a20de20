#pragma once

#include <memory>
#include <vector>

#include "collective/reducer.hpp"
#include "transport/transport.hpp"

namespace syncopate {

/// A sum by a foreign allreduce, which is not Syncopate's: it reports no rank that is late, so that
/// a long wait names all others.
class NativeReducer final : public Reducer {
 public:
  /// Both outlive it.
  NativeReducer(Group& group, NativeAllreduce& native) : group_(group), native_(native) {}

  void reduce(const Contribution& mine) override;

 private:
  std::vector<Rank> others() const;

  Group& group_;
  NativeAllreduce& native_;
};

}  // namespace syncopate
