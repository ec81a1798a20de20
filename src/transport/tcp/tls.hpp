#pragma once

#include <sys/types.h>

#include <asio/buffer.hpp>
#include <asio/error_code.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/mutex.hpp"

struct ssl_ctx_st;
struct ssl_session_st;
struct ssl_st;

namespace syncopate::tcp {

/// One side of an encrypted stream, over a non-blocking socket that outlives it.
///
/// Threads: one reads, any write, one at a time.
class TlsSession {
 public:
  enum class Next { done, read, write };  ///< what a handshake waits for

  /// `bytes_per_key`: sent before the key of this direction changes.
  TlsSession(ssl_ctx_st* context, int socket, bool dials, std::uint64_t bytes_per_key);
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  /// Goes on with the handshake as far as the socket lets it. Nothing is read or written before it
  /// is done: both sides have then proved that they know the key.
  /// Errors: ConfigError for another key; ProtocolError where the other side has no TLS 1.3;
  ///         asio::system_error, where the stream breaks.
  Next shake_hands();

  /// As of a non-blocking socket, but after `read_some` has returned some bytes, more may be here
  /// that the socket does not report: only `would_block` says that there are none.
  std::size_t read_some(std::span<const asio::mutable_buffer> space, asio::error_code& error);
  std::size_t write_some(std::span<const asio::const_buffer> buffers, asio::error_code& error);
  /// The number of bytes that are encrypted and not sent yet: `write_some` gets them again.
  std::size_t held_bytes() const;
  /// From now on, reads as much as has come, not the single records of a handshake.
  void read_ahead();
  /// Says that nothing more follows, if the socket takes it at once.
  void finish();

 private:
  struct Way;  ///< to the socket, as OpenSSL sees it

  asio::error_code error_of(int result) REQUIRES(mutex_);
  void encrypt(std::span<const asio::const_buffer> buffers) REQUIRES(mutex_);
  void encrypt(const std::byte* bytes, std::size_t count) REQUIRES(mutex_);
  bool send_encrypted(asio::error_code& error) REQUIRES(mutex_);
  ssize_t receive(char* into, std::size_t room) REQUIRES(mutex_);

  const int socket_;
  const std::uint64_t bytes_per_key_;
  mutable Mutex mutex_;  ///< OpenSSL's object takes one call at a time
  ssl_st* const session_;
  std::vector<std::byte> gathered_ GUARDED_BY(mutex_);   ///< small buffers, for one record
  std::vector<std::byte> encrypted_ GUARDED_BY(mutex_);  ///< that OpenSSL has written
  std::size_t sent_ GUARDED_BY(mutex_) = 0;              ///< of these
  std::size_t held_ GUARDED_BY(mutex_) = 0;              ///< as they were before
  std::vector<std::byte> arrived_ GUARDED_BY(mutex_);    ///< room for what is read ahead
  std::size_t filled_ GUARDED_BY(mutex_) = 0;            ///< of this
  std::size_t taken_ GUARDED_BY(mutex_) = 0;             ///< of what is there
  std::uint64_t with_this_key_ GUARDED_BY(mutex_) = 0;
  bool is_broken_ GUARDED_BY(mutex_) = false;  ///< after a changed byte OpenSSL takes no more
};

/// Encrypts the streams of a job by TLS 1.3 with a pre-shared key (RFC 8446, section 2.2): both
/// sides prove that they know the job's key, and an exchange of ephemeral keys keeps recorded
/// traffic secret even from one who learns the job's key later. There are no certificates, no
/// tickets and no early data, so that a recorded handshake is worth nothing.
///
/// Thread: any.
class Tls {
 public:
  enum class Side { dials, answers };

  /// AES-GCM allows more under one key (RFC 8446, section 5.5).
  static constexpr std::uint64_t usual_bytes_per_key = std::uint64_t{1} << 36;

  explicit Tls(const std::string& key, std::uint64_t bytes_per_key = usual_bytes_per_key);
  ~Tls();
  Tls(const Tls&) = delete;
  Tls& operator=(const Tls&) = delete;

  /// Encrypts what passes through a connected, non-blocking socket, which outlives the session.
  std::unique_ptr<TlsSession> session(int socket, Side side) const;

  /// The first byte of a stream that begins with a TLS handshake.
  static constexpr unsigned char first_byte = 0x16;

 private:
  ssl_ctx_st* context_;
  ssl_session_st* shared_key_;
  std::uint64_t bytes_per_key_;
};

}  // namespace syncopate::tcp
