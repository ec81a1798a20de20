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
#include <utility>

#include "base/errors.hpp"

namespace syncopate::tcp {
namespace {

/// The longest record of TLS, without its head.
constexpr std::size_t record_bytes = 16 * 1024;

/// What one system call reads at the most.
constexpr std::size_t read_bytes = 256 * 1024;

/// The engine reads this much of one stream before it serves others.
constexpr std::size_t most_in_a_row = 1024 * 1024;

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

/// True if one side has refused the other's key, by the first error in the thread's queue.
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
  return std::make_unique<TlsSession>(context_, socket, side == Side::dials, bytes_per_key_);
}

/// OpenSSL writes into memory, so that one system call sends many records. Its own way to a socket
/// would raise SIGPIPE, too, where the peer has gone, and the process may be the user's.
struct TlsSession::Way {
  static TlsSession& of(BIO* way) { return *static_cast<TlsSession*>(BIO_get_data(way)); }

  static int write(BIO* way, const char* bytes, int count) NO_THREAD_SAFETY_ANALYSIS {
    const auto* const begin = reinterpret_cast<const std::byte*>(bytes);
    of(way).encrypted_.insert(of(way).encrypted_.end(), begin, begin + count);
    return count;
  }

  static int read(BIO* way, char* into, int room) NO_THREAD_SAFETY_ANALYSIS {
    BIO_clear_retry_flags(way);
    const ssize_t bytes = of(way).receive(into, static_cast<std::size_t>(room));
    if (bytes < 0 && (errno == EAGAIN || errno == EINTR)) {
      BIO_set_retry_read(way);
    }
    return static_cast<int>(bytes);
  }

  static long control(BIO* /*way*/, int command, long /*number*/, void* /*pointer*/) {
    return command == BIO_CTRL_FLUSH ? 1 : 0;
  }

  static BIO_METHOD* make() {
    BIO_METHOD* const method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket");
    require(method != nullptr && BIO_meth_set_write(method, write) == 1 &&
                BIO_meth_set_read(method, read) == 1 && BIO_meth_set_ctrl(method, control) == 1,
            "describe a socket");
    return method;
  }

  /// For the life of the process, as OpenSSL's own.
  static const BIO_METHOD* method() {
    static const BIO_METHOD* const made = make();
    return made;
  }
};

TlsSession::TlsSession(ssl_ctx_st* context, int socket, bool dials, std::uint64_t bytes_per_key)
    : socket_(socket), bytes_per_key_(bytes_per_key), session_(SSL_new(context)) {
  BIO* const way = session_ != nullptr ? BIO_new(Way::method()) : nullptr;
  require(way != nullptr, "begin a session");
  BIO_set_data(way, this);
  BIO_set_init(way, 1);
  SSL_set_bio(session_, way, way);
  if (dials) {
    SSL_set_connect_state(session_);
  } else {
    SSL_set_accept_state(session_);
  }
}

TlsSession::~TlsSession() {
  SSL_free(session_);
}

TlsSession::Next TlsSession::shake_hands() {
  const MutexLock lock(mutex_);
  asio::error_code error;
  ERR_clear_error();
  errno = 0;
  const int result = SSL_do_handshake(session_);
  const int why = result == 1 ? SSL_ERROR_NONE : SSL_get_error(session_, result);
  const bool refused = why == SSL_ERROR_SSL && is_about_the_key();
  const char* const reason = ERR_reason_error_string(ERR_peek_error());
  const bool sent = send_encrypted(error);  // also what says that the handshake has failed
  if (refused) {
    throw ConfigError(
        "the job's key is not that of the other side: give both the same key file (--secret, or "
        "SYNCOPATE_KEY_FILE)");
  }
  if (why == SSL_ERROR_SSL) {
    throw ProtocolError(fmt::format("the other side does not speak TLS 1.3 ({})",
                                    reason != nullptr ? reason : "an unknown reason"));
  }
  if (why != SSL_ERROR_NONE && why != SSL_ERROR_WANT_READ) {
    throw asio::system_error(error_of(result));
  }
  if (error && error != asio::error::would_block) {
    throw asio::system_error(error);
  }
  if (!sent) {
    return Next::write;
  }
  if (why == SSL_ERROR_WANT_READ) {
    return Next::read;
  }
  if (SSL_session_reused(session_) != 1) {
    throw ProtocolError("the other side has not used the job's key");
  }
  return Next::done;
}

/// The error of a call that has returned `result`.
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
    while (filled < buffer.size() && total < most_in_a_row) {
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

/// Encrypts all buffers at once, and counts them when the last byte has left.
std::size_t TlsSession::write_some(std::span<const asio::const_buffer> buffers,
                                   asio::error_code& error) {
  const MutexLock lock(mutex_);
  if (held_ == 0) {
    encrypt(buffers);
  }
  if (is_broken_) {
    error = asio::error::connection_aborted;
    return 0;
  }
  return send_encrypted(error) ? std::exchange(held_, 0) : 0;
}

/// A large buffer as it is, small ones together.
void TlsSession::encrypt(std::span<const asio::const_buffer> buffers) {
  for (const asio::const_buffer& buffer : buffers) {
    const auto* const begin = static_cast<const std::byte*>(buffer.data());
    const std::size_t first = gathered_.empty() && buffer.size() >= record_bytes
                                  ? 0
                                  : std::min(buffer.size(), record_bytes - gathered_.size());
    gathered_.insert(gathered_.end(), begin, begin + first);
    if (gathered_.size() == record_bytes || first < buffer.size()) {
      encrypt(gathered_.data(), gathered_.size());
      gathered_.clear();
      const std::size_t whole = (buffer.size() - first) / record_bytes * record_bytes;
      encrypt(begin + first, whole);
      gathered_.insert(gathered_.end(), begin + first + whole, begin + buffer.size());
    }
  }
  encrypt(gathered_.data(), gathered_.size());
  gathered_.clear();
}

void TlsSession::encrypt(const std::byte* bytes, std::size_t count) {
  if (count == 0) {
    return;
  }
  ERR_clear_error();
  if (with_this_key_ >= bytes_per_key_) {
    with_this_key_ = 0;
    is_broken_ = SSL_key_update(session_, SSL_KEY_UPDATE_NOT_REQUESTED) != 1 || is_broken_;
  }
  std::size_t written = 0;
  is_broken_ = SSL_write_ex(session_, bytes, count, &written) != 1 || is_broken_;
  held_ += count;
  with_this_key_ += count;
}

/// Returns true once all of it has left.
bool TlsSession::send_encrypted(asio::error_code& error) {
  while (sent_ < encrypted_.size()) {
    const ssize_t sent =
        ::send(socket_, encrypted_.data() + sent_, encrypted_.size() - sent_, MSG_NOSIGNAL);
    if (sent < 0 && errno != EINTR) {
      error = errno == EAGAIN ? asio::error_code(asio::error::would_block)
                              : asio::error_code(errno, asio::error::get_system_category());
      return false;
    }
    sent_ += sent > 0 ? static_cast<std::size_t>(sent) : 0;
  }
  encrypted_.clear();
  sent_ = 0;
  return true;
}

std::size_t TlsSession::held_bytes() const {
  const MutexLock lock(mutex_);
  return held_;
}

/// OpenSSL reads the head of a record, then its rest; its own reading ahead moves, for each record,
/// all that follows.
ssize_t TlsSession::receive(char* into, std::size_t room) {
  if (arrived_.empty()) {
    return ::recv(socket_, into, room, 0);
  }
  if (taken_ == filled_) {
    const ssize_t bytes = ::recv(socket_, arrived_.data(), arrived_.size(), 0);
    if (bytes <= 0) {
      return bytes;
    }
    taken_ = 0;
    filled_ = static_cast<std::size_t>(bytes);
  }
  const std::size_t part = std::min(room, filled_ - taken_);
  std::memcpy(into, arrived_.data() + taken_, part);
  taken_ += part;
  return static_cast<ssize_t>(part);
}

void TlsSession::read_ahead() {
  const MutexLock lock(mutex_);
  arrived_.resize(read_bytes);
}

void TlsSession::finish() {
  const MutexLock lock(mutex_);
  ERR_clear_error();
  SSL_shutdown(session_);
  asio::error_code ignored;  // the end of the socket says the same
  send_encrypted(ignored);
}

}  // namespace syncopate::tcp
