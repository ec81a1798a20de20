#include "transport/tcp/tls.hpp"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <asio/error.hpp>
#include <asio/system_error.hpp>
#include <cerrno>
#include <cstring>

namespace syncopate::tcp {
namespace {

/// The longest record of TLS, without its head.
constexpr std::size_t record_bytes = 16 * 1024;

/// The one key of a job needs no other name.
constexpr std::array<unsigned char, 9> key_name{'s', 'y', 'n', 'c', 'o', 'p', 'a', 't', 'e'};

/// Of TLS_AES_128_GCM_SHA256, whose hash is that of the key exchange.
constexpr std::array<unsigned char, 2> cipher_id{0x13, 0x01};

[[noreturn]] void fail_in_openssl(const char* doing) {
  std::array<char, 256> text{};
  ERR_error_string_n(ERR_get_error(), text.data(), text.size());
  throw InternalError(fmt::format("OpenSSL cannot {}: {}", doing, text.data()));
}

void require(bool success, const char* doing) {
  if (!success) {
    fail_in_openssl(doing);
  }
}

/// A key of any length as one of 32 bytes.
std::array<unsigned char, 32> digest_of(const std::string& key) {
  static constexpr std::string_view purpose = "syncopate tls 1.3 ";
  const std::string text = std::string(purpose) + key;
  std::array<unsigned char, 32> digest{};
  unsigned int length = 0;
  require(EVP_Digest(text.data(), text.size(), digest.data(), &length, EVP_sha256(), nullptr) == 1,
          "compute a digest");
  return digest;
}

// OpenSSL's own way to a socket raises SIGPIPE where the peer has gone, and the process may be the
// user's.

int send_bytes(BIO* way, const char* bytes, int count) {
  BIO_clear_retry_flags(way);
  const auto socket = static_cast<int>(reinterpret_cast<std::intptr_t>(BIO_get_data(way)));
  const ssize_t sent = ::send(socket, bytes, static_cast<std::size_t>(count), MSG_NOSIGNAL);
  if (sent < 0 && (errno == EAGAIN || errno == EINTR)) {
    BIO_set_retry_write(way);
  }
  return static_cast<int>(sent);
}

int receive_bytes(BIO* way, char* into, int room) {
  BIO_clear_retry_flags(way);
  const auto socket = static_cast<int>(reinterpret_cast<std::intptr_t>(BIO_get_data(way)));
  const ssize_t received = ::recv(socket, into, static_cast<std::size_t>(room), 0);
  if (received < 0 && (errno == EAGAIN || errno == EINTR)) {
    BIO_set_retry_read(way);
  }
  return static_cast<int>(received);
}

long control(BIO* /*way*/, int command, long /*number*/, void* /*pointer*/) {
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

BIO_METHOD* make_way() {
  BIO_METHOD* const way = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket");
  require(way != nullptr && BIO_meth_set_write(way, send_bytes) == 1 &&
              BIO_meth_set_read(way, receive_bytes) == 1 && BIO_meth_set_ctrl(way, control) == 1,
          "describe a socket");
  return way;
}

/// For the life of the process, as OpenSSL's own.
const BIO_METHOD* way_to_a_socket() {
  static const BIO_METHOD* const way = make_way();
  return way;
}

SSL_SESSION* key_of(const SSL* session) {
  return static_cast<SSL_SESSION*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(session)));
}

int offer_key(SSL* session, const EVP_MD* /*hash*/, const unsigned char** name,
              std::size_t* name_length, SSL_SESSION** key) {
  *name = key_name.data();
  *name_length = key_name.size();
  *key = key_of(session);
  return SSL_SESSION_up_ref(*key);
}

/// Without a key the handshake fails, since this side has no certificate.
int find_key(SSL* session, const unsigned char* name, std::size_t name_length, SSL_SESSION** key) {
  const bool known =
      name_length == key_name.size() && std::memcmp(name, key_name.data(), key_name.size()) == 0;
  *key = known ? key_of(session) : nullptr;
  return known ? SSL_SESSION_up_ref(*key) : 1;
}

SSL_SESSION* shared_key_of(SSL_CTX* context, const std::string& key) {
  SSL_SESSION* const shared = SSL_SESSION_new();
  SSL* const any = SSL_new(context);
  const SSL_CIPHER* const cipher =
      any != nullptr ? SSL_CIPHER_find(any, cipher_id.data()) : nullptr;
  const auto secret = digest_of(key);
  const bool made = shared != nullptr && cipher != nullptr &&
                    SSL_SESSION_set1_master_key(shared, secret.data(), secret.size()) == 1 &&
                    SSL_SESSION_set_cipher(shared, cipher) == 1 &&
                    SSL_SESSION_set1_id_context(shared, key_name.data(), key_name.size()) == 1 &&
                    SSL_SESSION_set_protocol_version(shared, TLS1_3_VERSION) == 1;
  SSL_free(any);
  require(made, "take the job's key");
  return shared;
}

/// Of the thread's queue of errors: true if the other side has refused the key, or this one its.
bool is_about_the_key() {
  switch (ERR_GET_REASON(ERR_peek_error())) {
    case SSL_R_BINDER_DOES_NOT_VERIFY:
    case SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM:
    case SSL_R_NO_SHARED_CIPHER:
    case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE:
    case SSL_R_SSLV3_ALERT_ILLEGAL_PARAMETER:
    case SSL_R_TLSV1_ALERT_DECRYPT_ERROR:
    case SSL_R_CERTIFICATE_VERIFY_FAILED: return true;
    default: return false;
  }
}

/// Without OpenSSL's clean-up at the end of the process, in which streams may still be open.
void start_openssl() {
  static const int started = OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, nullptr);
  require(started == 1, "start");
}

SSL_CTX* new_context() {
  start_openssl();
  SSL_CTX* const context = SSL_CTX_new(TLS_method());
  require(context != nullptr, "start");
  return context;
}

}  // namespace

Tls::Tls(const std::string& key, std::uint64_t bytes_per_key)
    : context_(new_context()), shared_key_(nullptr), bytes_per_key_(bytes_per_key) {
  require(SSL_CTX_set_min_proto_version(context_, TLS1_3_VERSION) == 1 &&
              SSL_CTX_set_ciphersuites(context_, "TLS_AES_128_GCM_SHA256") == 1 &&
              SSL_CTX_set_session_id_context(context_, key_name.data(), key_name.size()) == 1,
          "restrict itself to TLS 1.3");
  SSL_CTX_set_verify(context_, SSL_VERIFY_PEER, nullptr);  // no certificate is ever good enough
  SSL_CTX_set_session_cache_mode(context_, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context_, 0);
  SSL_CTX_set_options(context_, SSL_OP_IGNORE_UNEXPECTED_EOF);  // it counts as a loss in any case
  SSL_CTX_set_mode(context_, SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  shared_key_ = shared_key_of(context_, key);
  SSL_CTX_set_app_data(context_, shared_key_);
  SSL_CTX_set_psk_use_session_callback(context_, offer_key);
  SSL_CTX_set_psk_find_session_callback(context_, find_key);
}

Tls::~Tls() {
  SSL_SESSION_free(shared_key_);
  SSL_CTX_free(context_);
}

std::unique_ptr<TlsSession> Tls::session(int socket, Side side) const {
  SSL* const session = SSL_new(context_);
  BIO* const way = session != nullptr ? BIO_new(way_to_a_socket()) : nullptr;
  require(way != nullptr, "begin a session");
  BIO_set_data(way, reinterpret_cast<void*>(static_cast<std::intptr_t>(socket)));
  BIO_set_init(way, 1);
  SSL_set_bio(session, way, way);
  if (side == Side::dials) {
    SSL_set_connect_state(session);
  } else {
    SSL_set_accept_state(session);
  }
  return std::make_unique<TlsSession>(session, bytes_per_key_);
}

TlsSession::TlsSession(ssl_st* session, std::uint64_t bytes_per_key)
    : bytes_per_key_(bytes_per_key), session_(session) {}

TlsSession::~TlsSession() {
  const MutexLock lock(mutex_);
  SSL_free(session_);
}

TlsSession::Next TlsSession::shake_hands() {
  const MutexLock lock(mutex_);
  ERR_clear_error();
  const int result = SSL_do_handshake(session_);
  if (result == 1) {
    if (SSL_session_reused(session_) != 1) {
      throw WrongTlsKey("the other side has not used the job's key");
    }
    return Next::done;
  }
  switch (SSL_get_error(session_, result)) {
    case SSL_ERROR_WANT_READ: return Next::read;
    case SSL_ERROR_WANT_WRITE: return Next::write;
    case SSL_ERROR_SSL:
      if (is_about_the_key()) {
        throw WrongTlsKey("the job's key is not that of the other side");
      }
      throw ProtocolError(fmt::format("the other side does not speak TLS 1.3 ({})",
                                      ERR_reason_error_string(ERR_peek_error())));
    default: throw asio::system_error(error_of(result));
  }
}

/// Of a call that has returned `result`.
asio::error_code TlsSession::error_of(int result) {
  switch (SSL_get_error(session_, result)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE: return asio::error::would_block;
    case SSL_ERROR_ZERO_RETURN: return asio::error::eof;
    case SSL_ERROR_SYSCALL:
      return errno != 0 ? asio::error_code(errno, asio::error::get_system_category())
                        : asio::error_code(asio::error::eof);
    default: return {EBADMSG, asio::error::get_system_category()};  // somebody has changed bytes
  }
}

std::size_t TlsSession::read_some(std::span<const asio::mutable_buffer> space,
                                  asio::error_code& error) {
  std::size_t total = 0;
  for (const asio::mutable_buffer& buffer : space) {
    std::size_t filled = 0;
    while (filled < buffer.size()) {
      const MutexLock lock(mutex_);
      ERR_clear_error();
      errno = 0;
      std::size_t bytes = 0;
      const int result = SSL_read_ex(session_, static_cast<char*>(buffer.data()) + filled,
                                     buffer.size() - filled, &bytes);
      if (result != 1) {
        error = total > 0 ? asio::error_code() : error_of(result);
        return total;
      }
      filled += bytes;
      total += bytes;
    }
  }
  return total;
}

/// Gathers small buffers into records. A record that the socket does not take stays for the next
/// call, which gets the same bytes again.
std::size_t TlsSession::write_some(std::span<const asio::const_buffer> buffers,
                                   asio::error_code& error) {
  const MutexLock lock(mutex_);
  std::size_t written = 0;
  if (!record_.empty()) {
    written = write_record(error);
    return written;
  }
  for (const asio::const_buffer& buffer : buffers) {
    const auto* const begin = static_cast<const std::byte*>(buffer.data());
    for (std::size_t taken = 0; taken < buffer.size();) {
      const std::size_t part = std::min(buffer.size() - taken, record_bytes - record_.size());
      record_.insert(record_.end(), begin + taken, begin + taken + part);
      taken += part;
      if (record_.size() == record_bytes) {
        const std::size_t sent = write_record(error);
        if (sent == 0) {
          error = written > 0 ? asio::error_code() : error;
          return written;
        }
        written += sent;
      }
    }
  }
  if (!record_.empty()) {
    written += write_record(error);
    error = written > 0 ? asio::error_code() : error;
  }
  return written;
}

/// Returns the bytes of the record, or zero where it has not left.
std::size_t TlsSession::write_record(asio::error_code& error) {
  ERR_clear_error();
  errno = 0;
  std::size_t bytes = 0;
  const int result = SSL_write_ex(session_, record_.data(), record_.size(), &bytes);
  if (result != 1) {
    error = error_of(result);
    return 0;
  }
  record_.clear();
  with_this_key_ += bytes;
  change_key_in_time();
  return bytes;
}

void TlsSession::change_key_in_time() {
  if (with_this_key_ >= bytes_per_key_) {
    with_this_key_ = 0;
    require(SSL_key_update(session_, SSL_KEY_UPDATE_NOT_REQUESTED) == 1, "change a key");
  }
}

std::size_t TlsSession::held_bytes() const {
  const MutexLock lock(mutex_);
  return record_.size();
}

void TlsSession::read_ahead() {
  const MutexLock lock(mutex_);
  SSL_set_read_ahead(session_, 1);
}

void TlsSession::finish() {
  const MutexLock lock(mutex_);
  ERR_clear_error();
  SSL_shutdown(session_);
}

}  // namespace syncopate::tcp
