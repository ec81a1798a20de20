#include "job/launch/descriptor.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/errors.hpp"

namespace syncopate {

Descriptor::Descriptor(Descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(value_, other.value_);
  return *this;
}

void Descriptor::close() {
  if (value_ >= 0) {
    ::close(std::exchange(value_, -1));
  }
}

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw_system_error("make a pipe");
  }
  Pipe pipe{Descriptor(ends[0]), Descriptor(ends[1])};
  if (::fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0) {
    throw_system_error("set up a pipe");
  }
  return pipe;
}

ListeningSocket listen_on_loopback() {
  ListeningSocket listener{Descriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), {}};
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* general = reinterpret_cast<sockaddr*>(&address);
  socklen_t size = sizeof address;
  const int socket = listener.socket.get();
  if (socket < 0 || ::bind(socket, general, size) != 0 || ::listen(socket, SOMAXCONN) != 0 ||
      ::getsockname(socket, general, &size) != 0) {
    throw_system_error("listen on loopback");
  }
  listener.address = fmt::format("127.0.0.1:{}", ntohs(address.sin_port));
  return listener;
}

void throw_system_error(const char* action) {
  throw Error(fmt::format("cannot {}: {}", action, std::strerror(errno)));
}

void LineSplitter::add(std::string_view bytes) {
  constexpr std::size_t most = std::size_t{1} << 20;
  // A line may come in many parts. What follows a carriage return at the end says what it is.
  const std::size_t searched = rest_.empty() ? 0 : rest_.size() - 1;
  rest_ += bytes;
  const auto is_known = [this](std::size_t end) {
    return end != std::string::npos && (rest_[end] == '\n' || end + 1 < rest_.size());
  };
  std::size_t begin = 0;
  for (std::size_t end = rest_.find_first_of("\r\n", searched); is_known(end);
       end = rest_.find_first_of("\r\n", begin)) {
    begin = take_line(begin, end);
  }
  rest_.erase(0, begin);
  if (rest_.size() > most) {
    finish();
  }
}

/// Where the line begins that follows the one of these bytes.
std::size_t LineSplitter::take_line(std::size_t begin, std::size_t end) {
  const std::string_view line = std::string_view(rest_).substr(begin, end - begin);
  const bool returns = rest_[end] == '\r';
  if (returns && rest_[end + 1] != '\n') {
    overwritten(line);
    return end + 1;
  }
  sink_(line);
  return end + (returns ? 2 : 1);
}

void LineSplitter::overwritten(std::string_view line) {
  constexpr Duration pause = std::chrono::seconds(10);
  const TimePoint now = now_();
  if (!line.empty() && (!last_overwritten_ || now - *last_overwritten_ >= pause)) {
    last_overwritten_ = now;
    sink_(line);
  }
}

void LineSplitter::finish() {
  if (!rest_.empty() && rest_.back() == '\r') {
    rest_.pop_back();
  }
  if (!rest_.empty()) {
    sink_(std::exchange(rest_, {}));
  }
}

}  // namespace syncopate
