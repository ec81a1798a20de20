// Goal:   a scheme has the same look in every figure, and within a figure another look than every
//         other scheme: in colour, for people with colour blindness, and in greyscale.
// Method: looks of sets of labels; simulated dichromacy (Machado et al. 2009), CIE 1976 distances.
#include "cli/report/looks.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <set>
#include <string>

namespace syncopate::cli {
namespace {

using Vector = std::array<double, 3>;
using Matrix = std::array<Vector, 3>;

const std::vector<std::string> known{"esync",     "ssgd",    "nbssgd", "asgd",   "local-sgd",
                                     "downpour",  "easgd",   "limit",  "ssp",    "hogwild",
                                     "ssgd-fast", "dc-asgd", "backup", "diloco", "local"};

Vector times(const Matrix& matrix, const Vector& vector) {
  Vector result{};
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 3; ++j) {
      result[i] += matrix[i][j] * vector[j];
    }
  }
  return result;
}

/// Converts "#RRGGBB" to linear light.
Vector light_of(const std::string& colour) {
  Vector light{};
  for (std::size_t i = 0; i < 3; ++i) {
    const double value = std::stoi(colour.substr(1 + 2 * i, 2), nullptr, 16) / 255.0;
    light[i] = value <= 0.04045 ? value / 12.92 : std::pow((value + 0.055) / 1.055, 2.4);
  }
  return light;
}

Vector lab_of(Vector light) {
  for (double& value : light) {
    value = std::min(1.0, std::max(0.0, value));
  }
  Vector xyz =
      times({{{0.4339, 0.3762, 0.1899}, {0.2126, 0.7152, 0.0722}, {0.0177, 0.1095, 0.8729}}},
            light);  // relative to the white point
  for (double& value : xyz) {
    value = value > 0.008856 ? std::cbrt(value) : 7.787 * value + 16.0 / 116;
  }
  return {116 * xyz[1] - 16, 500 * (xyz[0] - xyz[1]), 200 * (xyz[1] - xyz[2])};
}

double distance(const Vector& one, const Vector& other) {
  return std::hypot(one[0] - other[0], one[1] - other[1], one[2] - other[2]);
}

const std::array<Matrix, 4> eyes{{{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}},
                                  {{{0.152286, 1.052583, -0.204868},
                                    {0.114503, 0.786281, 0.099216},
                                    {-0.003882, -0.048116, 1.051998}}},
                                  {{{0.367322, 0.860646, -0.227968},
                                    {0.280085, 0.672501, 0.047413},
                                    {-0.011820, 0.042940, 0.968881}}},
                                  {{{1.255528, -0.076749, -0.178779},
                                    {-0.078411, 0.930809, 0.147602},
                                    {0.004733, 0.691367, 0.303900}}}}};

TEST(LooksTest, OfKnownSchemesDoNotDependOnTheirOrder) {
  const std::vector<Look> all = looks_of(known);
  const std::vector<Look> some = looks_of({"something", "local-sgd", "ssgd", "esync"});
  EXPECT_EQ(some[3].colour, all[0].colour);
  EXPECT_EQ(some[3].marker, all[0].marker);
  EXPECT_EQ(some[2].dash, all[1].dash);
  EXPECT_EQ(some[1].colour, all[4].colour);
  EXPECT_EQ(all[0].colour, "#0072B2");
}

TEST(LooksTest, OfBaselinesAreGrey) {
  for (const Look& look : looks_of({"ssgd", "ssgd-fast", "limit", "local"})) {
    EXPECT_EQ(look.colour.substr(1, 2), look.colour.substr(3, 2)) << look.colour;
    EXPECT_EQ(look.colour.substr(1, 2), look.colour.substr(5, 2)) << look.colour;
  }
}

TEST(LooksTest, OfKnownSchemesDifferToAllEyes) {
  const std::vector<Look> looks = looks_of(known);
  for (const Matrix& eye : eyes) {
    for (std::size_t i = 0; i < looks.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        EXPECT_GT(distance(lab_of(times(eye, light_of(looks[i].colour))),
                           lab_of(times(eye, light_of(looks[j].colour)))),
                  13)
            << known[i] << " and " << known[j];
      }
    }
  }
}

TEST(LooksTest, DifferInDashOrMarkerInGreyPrint) {
  std::vector<std::string> labels = known;
  for (int i = 0; i < 40; ++i) {
    labels.push_back("unknown " + std::to_string(i));
    labels.push_back("esync:round-time=" + std::to_string(i));
  }
  labels.resize(84);
  std::set<std::string> looks;
  for (const Look& look : looks_of(labels)) {
    looks.insert(look.dash + std::to_string(look.marker));
  }
  EXPECT_EQ(looks.size(), 84U);
}

TEST(LooksTest, OfASchemeWithOptionsAreItsOwnOrOfItsColour) {
  const std::vector<Look> fixed = looks_of({"esync", "nbssgd"});
  const std::vector<Look> looks =
      looks_of({"esync:pacing=paper", "nbssgd:mini-batches=4", "esync", "unknown"});
  EXPECT_EQ(looks[2].dash, fixed[0].dash);
  EXPECT_EQ(looks[0].colour, fixed[0].colour);
  EXPECT_NE(looks[0].dash, fixed[0].dash);
  EXPECT_NE(looks[0].marker, fixed[0].marker);
  EXPECT_NE(looks[0].pattern, fixed[0].pattern);
  EXPECT_EQ(looks[1].colour, fixed[1].colour);
  EXPECT_EQ(looks[1].marker, fixed[1].marker);
  EXPECT_NE(looks[3].colour, fixed[0].colour);
  EXPECT_NE(looks[3].colour, fixed[1].colour);
}

}  // namespace
}  // namespace syncopate::cli
