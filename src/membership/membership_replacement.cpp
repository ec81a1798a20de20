// The membership's evaluator, in whose place another node may come.
#include <algorithm>

#include "membership/membership.hpp"

namespace syncopate {

/// The node has been admitted: of the slots of a job that has started, only an evaluator's is ever
/// free.
Decisions Membership::replace_evaluator(NodeId node, const wire::Join& join) {
  Member replacement = member_of(node, join);
  const auto place =
      std::find_if(view_->members.begin(), view_->members.end(), [&](const Member& member) {
        return member.role == replacement.role && member.rank == replacement.rank;
      });
  *place = std::move(replacement);
  ++view_->number;
  return {ReplaceEvaluator{*view_, *place}};
}

/// A member of the view is gone. Without snapshots, an evaluator that comes has nothing to do.
void Membership::update_slots(const Member& gone, Liveness::Standing standing) {
  if (gone.role == Role::evaluator && standing == Liveness::Standing::dropped) {
    admission_.vacate(gone.node);
  }
  if (gone.role == options_.snapshots_from && gone.rank == Rank{0}) {
    admission_.end();
  }
}

}  // namespace syncopate
