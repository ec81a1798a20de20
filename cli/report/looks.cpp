#include "cli/report/looks.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "scheme/scheme_spec.hpp"

namespace syncopate::cli {
namespace {

// 7 and 12 have no common divisor, so all 84 pairs of dash and marker appear before one repeats.
constexpr std::array<const char*, 7> dashes{"solid",  "(9,3)", "(3,2)",        "(9,3,2,3)",
                                            "(16,3)", "(5,5)", "(9,3,2,3,2,3)"};
constexpr std::array<int, 12> markers{7, 5, 9, 13, 6, 4, 8, 11, 12, 10, 2, 3};
constexpr std::array<int, 7> patterns{3, 4, 2, 5, 6, 1, 7};

struct SchemeColour {
  std::string_view label;
  std::string_view colour;
};

/// Groups of a comparison that are no schemes: only the fast devices, and the upper bound.
constexpr std::array<SchemeColour, 2> baselines{{{"ssgd-fast", "#404040"}, {"limit", "#000000"}}};

/// The place in this list also determines dash, marker and pattern.
const std::vector<SchemeColour>& scheme_colours() {
  static const std::vector<SchemeColour> colours = [] {
    std::vector<SchemeColour> all;
    for (const SchemeSpec* scheme : all_schemes()) {
      if (!scheme->colour.empty()) {
        all.push_back({scheme->name, scheme->colour});
      }
    }
    all.insert(all.end(), baselines.begin(), baselines.end());
    return all;
  }();
  return colours;
}

Look look_at(std::size_t place, std::string_view colour) {
  return {.colour = std::string(colour),
          .dash = dashes[place % dashes.size()],
          .marker = markers[place % markers.size()],
          .pattern = patterns[place % patterns.size()]};
}

std::optional<std::size_t> place_of(std::string_view label) {
  const std::vector<SchemeColour>& known = scheme_colours();
  const auto found = std::find_if(known.begin(), known.end(),
                                  [&](const SchemeColour& one) { return one.label == label; });
  return found == known.end() ? std::nullopt
                              : std::optional(static_cast<std::size_t>(found - known.begin()));
}

/// Gives each label its look, those of the schemes first.
class Looks {
 public:
  explicit Looks(const std::vector<std::string>& labels)
      : labels_(labels), looks_(labels.size()), given_(labels.size()) {
    give([](const std::string& label) { return place_of(label); });
    give([](const std::string& label) { return place_of(label.substr(0, label.find(':'))); });
  }

  std::vector<Look> all() {
    for (std::size_t i = 0; i < labels_.size(); ++i) {
      if (!given_[i]) {
        const auto scheme = place_of(labels_[i].substr(0, labels_[i].find(':')));
        set(i, next_look(scheme ? scheme_colours()[*scheme].colour : least_used_colour()));
      }
    }
    return looks_;
  }

 private:
  /// Gives labels the looks of their schemes, unless an earlier label has the look.
  template <class PlaceOf>
  void give(PlaceOf find_place) {
    for (std::size_t i = 0; i < labels_.size(); ++i) {
      const std::optional<std::size_t> place = find_place(labels_[i]);
      if (!given_[i] && place && uses(scheme_colours()[*place].colour) == 0) {
        set(i, look_at(*place, scheme_colours()[*place].colour));
      }
    }
  }

  void set(std::size_t index, const Look& look) {
    looks_[index] = look;
    given_[index] = true;
  }

  std::size_t uses(std::string_view colour) const {
    std::size_t count = 0;
    for (std::size_t i = 0; i < looks_.size(); ++i) {
      count += given_[i] && looks_[i].colour == colour ? 1 : 0;
    }
    return count;
  }

  std::string_view least_used_colour() const {
    return std::min_element(scheme_colours().begin(), scheme_colours().end(),
                            [&](const SchemeColour& one, const SchemeColour& other) {
                              return uses(one.colour) < uses(other.colour);
                            })
        ->colour;
  }

  /// Returns a dash and marker that no other label has, and, while there is one, a pattern that the
  /// colour does not have yet.
  Look next_look(std::string_view colour) {
    Look look = look_at(next_++, colour);
    const auto* const unused = std::find_if(patterns.begin(), patterns.end(),
                                            [&](int pattern) { return !has(colour, pattern); });
    look.pattern = unused == patterns.end() ? look.pattern : *unused;
    return look;
  }

  bool has(std::string_view colour, int pattern) const {
    for (std::size_t i = 0; i < looks_.size(); ++i) {
      if (given_[i] && looks_[i].colour == colour && looks_[i].pattern == pattern) {
        return true;
      }
    }
    return false;
  }

  const std::vector<std::string>& labels_;
  std::vector<Look> looks_;
  std::vector<bool> given_;
  std::size_t next_ = scheme_colours().size();
};

}  // namespace

std::vector<Look> looks_of(const std::vector<std::string>& labels) {
  return Looks(labels).all();
}

}  // namespace syncopate::cli
