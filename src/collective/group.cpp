#include "collective/group.hpp"

#include "base/errors.hpp"

namespace syncopate {

Group::Group(World& world, Options options)
    : world_(world), options_(std::move(options)), waits_({.floor = options_.wait_limit}) {
  if (options_.self.value >= options_.members.size()) {
    throw InternalError("a group's own rank is not among its members");
  }
}

std::span<float> Group::scratch(std::size_t count) {
  if (scratch_.size() < count) {
    scratch_.resize(count);
  }
  return std::span(scratch_).first(count);
}

}  // namespace syncopate
