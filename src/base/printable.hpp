#pragma once

#include <string>
#include <string_view>

namespace syncopate {

/// True if `text` is whole UTF-8: no truncated, overlong or surrogate sequence.
bool is_utf8(std::string_view text);

/// `text` as it may be shown on a terminal and kept in JSON: one line of valid UTF-8 without
/// control characters. A line end or a tab becomes a space; any other control character (C0, DEL,
/// C1), a direction override, and each byte that is not UTF-8 becomes '?'.
///
/// For text that another process has sent: a name, a host, a message.
std::string printable(std::string_view text);

/// As `printable`, at most `letters` characters; "…" marks what was cut off.
std::string excerpt(std::string_view text, std::size_t letters);

/// As `printable`, but keeps line ends and tabs.
std::string printable_lines(std::string_view text);

}  // namespace syncopate
