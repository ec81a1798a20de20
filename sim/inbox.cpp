#include "sim/inbox.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/errors.hpp"

namespace syncopate::sim {
namespace {

bool matches(const Receive& receive, const Message& message) {
  return !receive.from || *receive.from == message.from;
}

std::exception_ptr size_error(const Receive& receive, const Message& message) {
  return std::make_exception_ptr(ProtocolError(fmt::format(
      "received a message of {} bytes from node {} under tag {}, expected {} bytes",
      message.payload.size(), message.from.value, message.tag.value, receive.into->size())));
}

/// Ends `receive` with `message`.
void hand_over(Receive& receive, Message message) {
  std::exception_ptr error;
  if (receive.into && receive.into->size() != message.payload.size()) {
    error = size_error(receive, message);
  } else if (receive.into) {
    std::copy(message.payload.begin(), message.payload.end(), receive.into->begin());
  } else {
    receive.message = std::move(message);
  }
  receive.completion.complete(error);
}

}  // namespace

void Inbox::arrive(Message message) {
  Box& box = boxes_[message.tag];
  const auto found = std::find_if(box.receives.begin(), box.receives.end(),
                                  [&](const Receive* r) { return matches(*r, message); });
  if (found == box.receives.end()) {
    box.messages.push_back(std::move(message));
    return;
  }
  Receive& receive = **found;
  box.receives.erase(found);
  hand_over(receive, std::move(message));
}

void Inbox::post(Receive& receive) {
  Box& box = boxes_[receive.tag];
  if (!serve(box, receive)) {
    box.receives.push_back(&receive);
  }
}

void Inbox::withdraw(Receive& receive) {
  std::erase(boxes_[receive.tag].receives, &receive);
}

void Inbox::lose(NodeId peer, const std::string& why) {
  losses_.push_back({peer, why});
  for (auto& entry : boxes_) {
    Box& box = entry.second;
    std::erase_if(box.receives, [&](Receive* receive) { return serve(box, *receive); });
  }
}

void Inbox::cancel(const std::exception_ptr& error) {
  for (auto& [tag, box] : boxes_) {
    for (Receive* const receive : std::exchange(box.receives, {})) {
      receive->completion.complete(error);
    }
    box.messages.clear();
  }
}

/// Ends a receive with a message or a loss, if there is one for it.
bool Inbox::serve(Box& box, Receive& receive) {
  const auto found = std::find_if(box.messages.begin(), box.messages.end(),
                                  [&](const Message& m) { return matches(receive, m); });
  if (found != box.messages.end()) {
    Message message = std::move(*found);
    box.messages.erase(found);
    hand_over(receive, std::move(message));
    return true;
  }
  if (const Loss* const loss = loss_for(receive)) {
    receive.completion.complete(std::make_exception_ptr(PeerLost(loss->peer, loss->why)));
    return true;
  }
  return false;
}

const Inbox::Loss* Inbox::loss_for(const Receive& receive) {
  if (!receive.from) {
    return losses_reported_ < losses_.size() ? &losses_[losses_reported_++] : nullptr;
  }
  const auto found = std::find_if(losses_.begin(), losses_.end(),
                                  [&](const Loss& loss) { return loss.peer == *receive.from; });
  return found == losses_.end() ? nullptr : &*found;
}

}  // namespace syncopate::sim
