#include "transport/tcp/refusal_log.hpp"

#include "base/log.hpp"

namespace syncopate::tcp {

void RefusalLog::add(const std::string& remote, const std::string& reason, TimePoint now) {
  ++count_;
  if (count_ > lines && now < last_line_ + period) {
    return;
  }
  const std::uint64_t unseen = count_ - logged_ - 1;
  logged_ = count_;
  last_line_ = now;
  if (unseen == 0) {
    log::warn("turned away a connection from {}: {}", remote, reason);
  } else {
    log::warn("turned away {} connections since the last line, and one from {}: {}", unseen, remote,
              reason);
  }
}

}  // namespace syncopate::tcp
