#include "job/launch/line_writer.hpp"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "transport/steady_time.hpp"

namespace syncopate {
namespace {

/// If a terminal reports room, there is room for at least a few hundred bytes.
constexpr std::size_t piece_for_terminal = 256;

mode_t kind_of(int descriptor) {
  struct stat status {};
  return ::fstat(descriptor, &status) == 0 ? status.st_mode & S_IFMT : 0;
}

/// The number of bytes that fit whenever `poll` has found room.
std::size_t piece_of(mode_t kind) {
  switch (kind) {
    case S_IFIFO: return PIPE_BUF;
    case S_IFCHR: return piece_for_terminal;
    default: return 0;
  }
}

bool has_room(int descriptor, int milliseconds) {
  pollfd room{descriptor, POLLOUT, 0};
  return ::poll(&room, 1, milliseconds) > 0;
}

/// True if no process can read the pipe any more.
bool has_no_reader(int descriptor) {
  pollfd end{descriptor, 0, 0};
  return ::poll(&end, 1, 0) > 0 && (end.revents & POLLERR) != 0;
}

/// As `write`, without SIGPIPE: the signal of this thread is held back, and taken.
ssize_t write_without_signal(int descriptor, std::string_view text) {
  sigset_t broken_pipe;
  sigset_t before;
  ::sigemptyset(&broken_pipe);
  ::sigaddset(&broken_pipe, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &broken_pipe, &before);
  const ssize_t written = ::write(descriptor, text.data(), text.size());
  const int error = errno;
  if (written < 0 && error == EPIPE && ::sigismember(&before, SIGPIPE) == 0) {
    const timespec at_once{};
    ::sigtimedwait(&broken_pipe, nullptr, &at_once);
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = error;
  return written;
}

/// A write to a socket can be non-blocking; for other descriptors, the caller has checked for room.
ssize_t write_piece(int descriptor, mode_t kind, std::string_view text) {
  if (kind == S_IFSOCK) {
    return ::send(descriptor, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  }
  return write_without_signal(descriptor, text);
}

}  // namespace

LineWriter::LineWriter(int descriptor)
    : descriptor_(descriptor), kind_(kind_of(descriptor)), piece_(piece_of(kind_)) {}

void LineWriter::write(std::string_view text) {
  if (closed_ || queued_ + text.size() > most_queued) {
    lost_ = true;
    return;
  }
  if (!text.empty()) {
    queue_.emplace_back(text);
    queued_ += text.size();
  }
  flush();
}

void LineWriter::offer(std::string_view text) {
  flush();
  if (!is_behind()) {
    write(text);
  }
}

void LineWriter::flush() {
  closed_ = closed_ || (kind_ == S_IFIFO && has_no_reader(descriptor_));
  while (!queue_.empty() && has_room(descriptor_, 0) && write_some()) {
  }
}

/// Writes a piece of the queue. Returns false if there was no room after all.
bool LineWriter::write_some() {
  const std::string_view rest = std::string_view(queue_.front()).substr(written_);
  const std::string_view piece = rest.substr(0, piece_ == 0 ? rest.npos : piece_);
  const ssize_t written = write_piece(descriptor_, kind_, piece);
  if (written < 0 && (errno == EAGAIN || errno == EINTR)) {
    return false;
  }
  closed_ = closed_ || (written < 0 && errno == EPIPE);
  lost_ = lost_ || written < 0;
  written_ += written < 0 ? rest.size() : static_cast<std::size_t>(written);
  if (written_ == queue_.front().size()) {
    queued_ -= written_;
    written_ = 0;
    queue_.pop_front();
  }
  if (closed_) {
    queue_.clear();
    queued_ = 0;
  }
  return true;
}

bool LineWriter::finish(Duration limit) {
  const TimePoint end = steady_now() + limit;
  flush();
  while (!queue_.empty() && steady_now() < end) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - steady_now());
    has_room(descriptor_, static_cast<int>(std::max<std::int64_t>(0, left.count())));
    flush();
  }
  return queue_.empty();
}

bool LineWriter::is_behind() const {
  if (!queue_.empty() || kind_ != S_IFIFO) {
    return !queue_.empty();
  }
  int unread = 0;
  const int capacity = ::fcntl(descriptor_, F_GETPIPE_SZ);
  return ::ioctl(descriptor_, FIONREAD, &unread) == 0 && unread > capacity / 2;
}

}  // namespace syncopate
