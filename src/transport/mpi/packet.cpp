#include "transport/mpi/packet.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstring>
#include <string_view>

#include "base/errors.hpp"

namespace syncopate::mpi {
namespace {

constexpr std::string_view prefix = "mpi:";

/// The number at the beginning of `text`, which loses it. False, where there is none.
template <class Number>
bool take_number(std::string_view& text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return error == std::errc();
}

bool take(std::string_view& text, std::string_view word) {
  const bool found = text.substr(0, word.size()) == word;
  text.remove_prefix(found ? word.size() : 0);
  return found;
}

}  // namespace

std::string to_string(const Site& site) {
  return fmt::format("{}{}.{}", prefix, site.rank, site.slot);
}

Site parse_site(const std::string& text) {
  Site site;
  std::string_view rest = text;
  if (!take(rest, prefix) || !take_number(rest, site.rank) || !take(rest, ".") ||
      !take_number(rest, site.slot) || !rest.empty()) {
    throw ConfigError(fmt::format("expected an address like mpi:3.1, found {:?}", text));
  }
  return site;
}

std::vector<std::byte> encode(const std::vector<Unfinished>& unfinished) {
  const auto bytes = std::as_bytes(std::span(unfinished));
  return {bytes.begin(), bytes.end()};
}

std::vector<Unfinished> decode_unfinished(std::span<const std::byte> payload) {
  if (payload.size() % sizeof(Unfinished) != 0) {
    throw ProtocolError(fmt::format("expected a goodbye in entries of {} bytes, found {} bytes",
                                    sizeof(Unfinished), payload.size()));
  }
  std::vector<Unfinished> unfinished(payload.size() / sizeof(Unfinished));
  if (!payload.empty()) {
    std::memcpy(unfinished.data(), payload.data(), payload.size());
  }
  return unfinished;
}

}  // namespace syncopate::mpi
