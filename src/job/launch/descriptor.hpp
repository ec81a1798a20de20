#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace syncopate {

/// A file descriptor that is closed with its owner, and in every program that this process becomes.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int value) : value_(value) {}
  ~Descriptor() { close(); }
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&& other) noexcept;

  int get() const { return value_; }
  void close();

 private:
  int value_ = -1;
};

struct Pipe {
  Descriptor read;  ///< does not block
  Descriptor write;
};

/// Errors: Error.
Pipe make_pipe();

/// A socket that accepts connections on loopback, and its address for others.
struct ListeningSocket {
  Descriptor socket;
  std::string address;  ///< "127.0.0.1:40001"
};

/// Listens on a port that the system chooses. Errors: Error.
ListeningSocket listen_on_loopback();

/// Throws Error: "cannot <action>: <the system's reason>".
[[noreturn]] void throw_system_error(const char* action);

/// Splits a stream of bytes into lines.
class LineSplitter {
 public:
  using Sink = std::function<void(std::string_view)>;

  /// `sink` receives each line, without its end.
  explicit LineSplitter(Sink sink) : sink_(std::move(sink)) {}

  void add(std::string_view bytes);
  /// Passes the bytes after the last line end to the sink, if there are any.
  void finish();

 private:
  Sink sink_;
  std::string rest_;
};

}  // namespace syncopate
