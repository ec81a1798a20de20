#pragma once

#include <string>

namespace syncopate::cli {

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

/// A socket that accepts connections on loopback, and its address as others are told it.
struct Listener {
  Descriptor socket;
  std::string address;  ///< "127.0.0.1:40001"
};

/// Listens on a port that the system chooses. Errors: Error.
Listener listen_on_loopback();

/// Throws Error: "cannot <action>: <the system's reason>".
[[noreturn]] void throw_system_error(const char* action);

}  // namespace syncopate::cli
