#include "membership/member_state.hpp"

#include <utility>

#include "base/errors.hpp"

namespace syncopate {

void MemberState::apply(const wire::FromCoordinator& message) {
  switch (message.body_case()) {
    case wire::FromCoordinator::kView:
      view_ = from_wire(message.view());
      evaluators_ = view_->of(Role::evaluator);
      break;
    case wire::FromCoordinator::kReplaced: on_replacement(message.replaced()); break;
    case wire::FromCoordinator::kReleased: on_release(message.released()); break;
    case wire::FromCoordinator::kSpeedShare: speed_share_ = message.speed_share().share(); break;
    case wire::FromCoordinator::kStop:
      stop_reason_ = message.stop().reason();
      complete_ = complete_ || message.stop().complete();
      break;
    case wire::FromCoordinator::kDropped: on_drop(message.dropped()); break;
    case wire::FromCoordinator::kAbort: ended_ = to_error(message.abort()); break;
    case wire::FromCoordinator::kPing:
    case wire::FromCoordinator::kMoreTime:
    case wire::FromCoordinator::kPace:
    case wire::FromCoordinator::kPrograms:
    case wire::FromCoordinator::kTraining:
    case wire::FromCoordinator::kLease:
    case wire::FromCoordinator::kEnded: break;
    case wire::FromCoordinator::kEvent:
    case wire::FromCoordinator::kLauncherWelcome:
    case wire::FromCoordinator::kJob:
    case wire::FromCoordinator::BODY_NOT_SET:
      throw ProtocolError("the coordinator sent a control message that no member expects");
  }
}

/// A run that is resumed at a restart receives none of the speed shares from before it.
void MemberState::on_release(const wire::Released& released) {
  released_ = released.barrier();
  if (released.restarts()) {
    pacer_ = released.pacer();
    speed_share_.reset();
  }
}

void MemberState::on_drop(const wire::Dropped& dropped) {
  if (dropped.role() == wire::ROLE_EVALUATOR) {
    dropped_evaluator_ = dropped;
  } else {
    dropped_.push_back(dropped);
  }
}

void MemberState::on_replacement(const wire::Member& replacement) {
  evaluators_.push_back(from_wire(replacement));
  dropped_evaluator_.reset();
}

std::optional<NodeId> MemberState::evaluator() const {
  return evaluators_.empty() || dropped_evaluator_ ? std::nullopt
                                                   : std::optional(evaluators_.back().node);
}

std::vector<Rank> MemberState::lost() const {
  std::vector<Rank> ranks;
  for (const wire::Dropped& worker : dropped_) {
    ranks.push_back(Rank{worker.rank()});
  }
  return ranks;
}

std::vector<wire::Dropped> MemberState::take_dropped() {
  const std::size_t taken = std::exchange(taken_, dropped_.size());
  return {dropped_.begin() + static_cast<std::ptrdiff_t>(taken), dropped_.end()};
}

void MemberState::end(const std::exception_ptr& error) {
  ended_ = ended_ ? ended_ : error;
}

}  // namespace syncopate
