// The replacement of a job's evaluator by another node.
#include <algorithm>

#include "membership/membership.hpp"

namespace syncopate {

/// Puts the admitted node in the evaluator's place: in a job that has started, no other slot is
/// ever free.
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

/// Updates the slots after a member of the view is gone. Once the sender of snapshots is gone, a
/// new evaluator would have nothing to do.
void Membership::update_slots(const Member& gone, Liveness::Standing standing) {
  if (gone.role == Role::evaluator && standing == Liveness::Standing::dropped) {
    admission_.vacate(gone.node);
  }
  if (gone.role == options_.snapshots_from && gone.rank == Rank{0}) {
    admission_.end();
  }
}

}  // namespace syncopate
