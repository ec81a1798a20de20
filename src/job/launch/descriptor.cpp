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
#include <charconv>
#include <cstring>
#include <string>
#include <utility>

#include "base/errors.hpp"
#include "base/random.hpp"

namespace syncopate {
namespace {

/// True if a line is empty, or a bar that was overwritten with spaces.
bool is_blank(std::string_view line) {
  return line.find_first_not_of(' ') == std::string_view::npos;
}

}  // namespace

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

std::uint16_t port_for_another() {
  constexpr std::uint16_t first = 10'000;
  constexpr std::uint16_t last = 32'767;  // from the next one on the system gives ports by itself
  constexpr int attempts = 100;
  Random random(std::hash<std::string>{}(unguessable_token()));
  for (int attempt = 0; attempt < attempts; ++attempt) {
    const Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_ANY);
    address.sin_port = htons(static_cast<std::uint16_t>(first + random.below(last - first + 1)));
    if (::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) {
      return ntohs(address.sin_port);
    }
  }
  throw_system_error("find a free port from 10000 to 32767");
}

void throw_system_error(const char* action) {
  throw Error(fmt::format("cannot {}: {}", action, std::strerror(errno)));
}

void LineSplitter::add(std::string_view bytes) {
  constexpr std::size_t most = std::size_t{1} << 20;
  rest_ += bytes;
  std::size_t begin = 0;
  LineEnd end = first_end(searched_);
  for (; end.size > 0; end = first_end(begin)) {
    take_line(std::string_view(rest_).substr(begin, end.begin - begin), end);
    begin = end.begin + end.size;
  }
  rest_.erase(0, begin);
  searched_ = end.begin - begin;
  if (rest_.size() > most) {
    finish();
  }
}

/// The first line end from `from` on. If its size is 0, the search continues there when more bytes
/// have arrived.
LineSplitter::LineEnd LineSplitter::first_end(std::size_t from) const {
  constexpr std::string_view starts = "\r\n\x1b";
  for (std::size_t at = rest_.find_first_of(starts, from); at != std::string::npos;
       at = rest_.find_first_of(starts, at + 1)) {
    if (const auto end = end_at(at)) {
      return *end;
    }
  }
  return {.begin = rest_.size()};
}

/// Empty if the line continues at `begin`.
std::optional<LineSplitter::LineEnd> LineSplitter::end_at(std::size_t begin) const {
  if (rest_[begin] == '\n') {
    return LineEnd{.begin = begin, .size = 1};
  }
  if (begin + 1 == rest_.size()) {
    return LineEnd{.begin = begin};
  }
  if (rest_[begin] == '\x1b') {
    return cursor_up_at(begin);
  }
  return rest_[begin + 1] == '\n'
             ? LineEnd{.begin = begin, .size = 2}
             : LineEnd{.begin = begin, .size = 1, .kind = Ends::return_to_begin};
}

/// `ESC [ n A`, where n is 1 without a number.
std::optional<LineSplitter::LineEnd> LineSplitter::cursor_up_at(std::size_t begin) const {
  if (rest_[begin + 1] != '[') {
    return std::nullopt;
  }
  const std::size_t last = rest_.find_first_not_of("0123456789", begin + 2);
  if (last == std::string::npos) {
    return LineEnd{.begin = begin};
  }
  if (rest_[last] != 'A') {
    return std::nullopt;
  }
  std::size_t rows = 1;
  std::from_chars(&rest_[begin + 2], &rest_[last], rows);
  return LineEnd{.begin = begin, .size = last + 1 - begin, .kind = Ends::up, .rows = rows};
}

void LineSplitter::take_line(std::string_view line, const LineEnd& end) {
  if (end.kind == Ends::line) {
    take_fed_line(line);
  } else if (end.kind == Ends::return_to_begin) {
    overwritten(line);
  } else {
    overwritten(std::exchange(held_, std::nullopt).value_or(""));
    overwritten(line);
    has_moved_up_ = true;
    constexpr std::size_t most_rows = 1000;
    rows_below_ = std::min(rows_below_ + std::min(end.rows, most_rows), most_rows);
  }
  last_end_ = end.kind;
}

/// Takes a line that ends with a line feed. Above rows that the program has written, a blank line
/// only moves the cursor down again.
void LineSplitter::take_fed_line(std::string_view line) {
  const bool goes_down = rows_below_ > 0;
  rows_below_ -= goes_down ? 1 : 0;
  if (goes_down && is_blank(line)) {
    return;
  }
  pass_held();
  if (has_moved_up_ && last_end_ == Ends::return_to_begin) {
    held_ = line;
  } else {
    sink_(line);
  }
}

void LineSplitter::overwritten(std::string_view line) {
  constexpr Duration pause = std::chrono::seconds(10);
  if (is_blank(line)) {
    return;
  }
  const TimePoint now = now_();
  if (!last_overwritten_ || now - *last_overwritten_ >= pause) {
    last_overwritten_ = now;
    sink_(line);
  }
}

void LineSplitter::pass_held() {
  if (const auto held = std::exchange(held_, std::nullopt)) {
    sink_(*held);
  }
}

void LineSplitter::finish() {
  if (!rest_.empty() && rest_.back() == '\r') {
    rest_.pop_back();
  }
  pass_held();
  searched_ = 0;
  if (!rest_.empty()) {
    sink_(std::exchange(rest_, {}));
  }
}

}  // namespace syncopate
