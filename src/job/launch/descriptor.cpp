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
  const std::size_t searched = rest_.size();  // a line may come in many parts
  rest_ += bytes;
  std::size_t begin = 0;
  for (std::size_t end; (end = rest_.find('\n', std::max(begin, searched))) != std::string::npos;
       begin = end + 1) {
    sink_(std::string_view(rest_).substr(begin, end - begin));
  }
  rest_.erase(0, begin);
}

void LineSplitter::finish() {
  if (!rest_.empty()) {
    sink_(std::exchange(rest_, {}));
  }
}

}  // namespace syncopate
