// Goal:   each figure has its axes, its legend and one curve or bar per scheme, in the script and
//         in the drawing; a time line shows the contents of the logs.
// Method: the test compares the scripts of made-up runs, and reads gnuplot's SVG as text.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <regex>

#include "base/errors.hpp"
#include "cli/report/bar_plots.hpp"
#include "cli/report/curve_plots.hpp"
#include "cli/report/gnuplot.hpp"
#include "cli/report/plot.hpp"
#include "cli/report/report_files.hpp"
#include "cli/report/run_list.hpp"
#include "cli/report/timeline_plot.hpp"
#include "tests/unit/cli/report/made_runs.hpp"

namespace syncopate::cli {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::size_t count_in(const std::string& text, const std::string& what) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) {
    ++count;
  }
  return count;
}

/// Makes runs on one cluster: two seeds of ssgd, and one of esync that takes half the time.
std::vector<Setting> two_schemes(MadeRuns& made, const std::string& cluster = "mixed.toml") {
  return study_of(
      read_runs(
          {made.add(cluster + "a", {.cluster = cluster}),
           made.add(cluster + "b", {.seed = 2, .cluster = cluster, .accuracies = {0.3, 0.7, 0.9}}),
           made.add(cluster + "c", {.scheme = "esync", .cluster = cluster, .seconds = 0.5})}),
      {.target = 0.6});
}

TEST(PlotTest, QuotesTextsAndKeepsThemOnOneLine) {
  EXPECT_EQ(gnuplot_string("it's\n1"), "'it''s 1'");
  const std::string script =
      script_of({.name = "x", .caption = "", .data = "DATA\n", .drawing = "plot x\n"});
  EXPECT_THAT(script,
              AllOf(testing::StartsWith("DATA\n"), HasSubstr("set output 'x'.'.'.format"),
                    HasSubstr("plot x\n"), HasSubstr("size 480,340"), HasSubstr("size 1440,1020")));
}

TEST(LegendTest, TakesALineForWhatFitsBesideEachOther) {
  EXPECT_EQ(legend_size({"a", "b", "c"}, 480).height, 32U);
  EXPECT_EQ(legend_size({"a", "b", "c"}, 480).columns, 6U);
  EXPECT_EQ(legend_size({std::string(40, 'x'), "b", "c"}, 480).height, 76U);
}

TEST(AccuracyPlotTest, HasACurveAndALegendForEachSchemeAndABandOverSeeds) {
  MadeRuns made;
  const auto settings = two_schemes(made);
  const auto plot = accuracy_plot(settings[0], Progress::training_time);
  ASSERT_TRUE(plot);
  EXPECT_THAT(plot->drawing,
              AllOf(HasSubstr("set xlabel 'training time (s)'"),
                    HasSubstr("set ylabel 'test accuracy'"), HasSubstr("title 'ssgd (2 seeds)'"),
                    HasSubstr("title 'esync'"), HasSubstr("first 0.6 to graph 1")));
  EXPECT_EQ(count_in(plot->drawing, "with linespoints"), 2U);
  EXPECT_EQ(count_in(plot->drawing, "with filledcurves"), 1U);
  // The points of esync: 0.2, the mean of three values, 0.8.
  EXPECT_THAT(plot->data, HasSubstr("$line1 << END\n0.5 0.2 0.2 0.2\n1 0.533333 "));
  const auto samples = accuracy_plot(settings[0], Progress::samples);
  EXPECT_THAT(samples->drawing, HasSubstr("set xlabel 'samples (thousands)'"));
  EXPECT_THAT(samples->data, HasSubstr("$line1 << END\n1 0.2 0.2 0.2\n2 0.533333 "));
}

TEST(AccuracyPlotTest, HasALogarithmicTimeWhereOneSchemeTakesTenTimesAnothers) {
  MadeRuns made;
  const auto drawing = [&](const std::string& folder, double seconds) {
    const auto settings =
        study_of(read_runs({made.add(folder + "a"),
                            made.add(folder + "b", {.scheme = "esync", .seconds = seconds})}),
                 {});
    EXPECT_THAT(accuracy_plot(settings[0], Progress::samples)->drawing,
                Not(HasSubstr("set logscale")));
    return accuracy_plot(settings[0], Progress::training_time)->drawing;
  };
  EXPECT_THAT(drawing("near", 0.11),
              AllOf(HasSubstr("set xrange [0:*]"), Not(HasSubstr("set logscale"))));
  EXPECT_THAT(drawing("far", 0.09), HasSubstr("set logscale x 10\nset xrange [0.072:3.75]"));
}

TEST(AccuracyPlotTest, HasTheAccuraciesThatOccur) {
  MadeRuns made;
  const auto drawing = [&](const std::string& folder, std::vector<double> accuracies,
                           double target) {
    const auto settings = study_of(
        read_runs({made.add(folder, {.accuracies = std::move(accuracies)})}), {.target = target});
    return accuracy_plot(settings[0], Progress::training_time)->drawing;
  };
  EXPECT_THAT(drawing("low", {0.11, 0.2, 0.31}, 0.2), HasSubstr("set yrange [0.1:0.35]\n"));
  EXPECT_THAT(drawing("target", {0.11, 0.2, 0.31}, 0.6), HasSubstr("set yrange [0.1:0.6]\n"));
  EXPECT_THAT(drawing("high", {0.981, 0.99, 0.999}, 0.99), HasSubstr("set yrange [0.98:1]\n"));
  EXPECT_THAT(drawing("flat", {0.5, 0.5, 0.5}, 0.5), HasSubstr("set yrange [0.5:0.51]\n"));
  EXPECT_THAT(drawing("one", {1, 1, 1}, 1), HasSubstr("set yrange [0.99:1]\n"));
}

TEST(AccuracyPlotTest, IsMissingWithoutEvaluations) {
  MadeRuns made;
  const auto settings = study_of(read_runs({made.add("a", {.accuracies = {}})}), {});
  EXPECT_FALSE(accuracy_plot(settings[0], Progress::training_time));
}

TEST(BarPlotsTest, HaveABarForEachSchemeWithItsFigure) {
  MadeRuns made;
  const auto plots = bar_plots(two_schemes(made)[0]);
  std::vector<std::string> names;
  for (const Plot& plot : plots) {
    names.push_back(plot.name);
  }
  ASSERT_THAT(names, ElementsAre("throughput", "time-to-accuracy", "accuracy", "exchanged",
                                 "communication", "computing-time"));
  EXPECT_THAT(plots[0].data, HasSubstr("\n1000 0 1000 1000 \"1,000\" 0x686868 1000 1000\n"
                                       "1000 1 1000 1000 \"1,000\" 0x0072B2 1000 1000\n"));
  EXPECT_THAT(plots[0].drawing,
              AllOf(HasSubstr("'throughput (samples/s)'"), HasSubstr("('ssgd' 0, 'esync' 1)")));
  EXPECT_THAT(plots[1].data, HasSubstr("\n2 0 2 2 \"2\" 0x686868 2 2\n1 1 1 1 \"1\" "));
  // ssgd has 0.8 and 0.9, esync has 0.8 with its single seed.
  EXPECT_THAT(plots[2].data,
              HasSubstr("\n0.85 0 0.779289 0.920711 \"0.8500 ± 0.0707\" 0x686868 0.920711 0.85\n"
                        "0.8 1 0.8 0.8 \"0.8000\" 0x0072B2 0.8 0.8\n"));
  EXPECT_THAT(plots[2].drawing, HasSubstr("set xtics 0,0.2,1\n"));
  // 8 MB and 4 MB over 4,000 samples; the second part of the bar is hatched.
  EXPECT_THAT(plots[3].data, HasSubstr("\n3 0 3 3 \"3\" 0x686868 3 2\n"));
  EXPECT_THAT(plots[4].data, HasSubstr("\n5 0 5 5 \"5 %\" "));
  EXPECT_THAT(plots[5].drawing, AllOf(HasSubstr("('0 gpu' 0, '1 cpu' 1)"),
                                      HasSubstr("title 'ssgd'"), HasSubstr("title 'esync'")));
  EXPECT_THAT(plots[5].data, HasSubstr("$group0 << END\n25 -0.4 0\n90 0.6 1\n"));
}

TEST(BarPlotsTest, SayWhereATargetIsNotReached) {
  MadeRuns made;
  const auto runs = {made.add("a"),
                     made.add("b", {.scheme = "asgd", .accuracies = {0.1, 0.2, 0.3}}),
                     made.add("c", {.scheme = "easgd", .accuracies = {}}),
                     made.add("d", {.scheme = "esync"}),
                     made.add("e", {.scheme = "esync", .seed = 2, .accuracies = {0.1, 0.2}}),
                     made.add("f", {.scheme = "esync", .seed = 3, .accuracies = {0.1, 0.2}})};
  const auto plots = bar_plots(study_of(read_runs(runs), {.target = 0.6})[0]);
  EXPECT_THAT(plots[1].data,
              HasSubstr("$bars << END\n2 0 2 2 \"2\" 0x686868 2 2\n"
                        "NaN 1 NaN NaN \"not reached\" 0x009E73 0 0\n"
                        "NaN 2 NaN NaN \"reached by 1 of 3 runs\" 0x0072B2 0 0\nEND"));
  const auto none = bar_plots(study_of(read_runs(runs), {.target = 0.99})[0]);
  EXPECT_EQ(none[1].name, "accuracy") << "nothing to compare";
}

TEST(BarPlotsTest, HaveLogarithmicTimesWhereTheyDifferTwentyTimes) {
  MadeRuns made;
  const auto drawing = [&](const std::string& folder, double seconds) {
    const auto settings =
        study_of(read_runs({made.add(folder + "a"),
                            made.add(folder + "b", {.scheme = "esync", .seconds = seconds})}),
                 {.target = 0.6});
    const auto plots = bar_plots(settings[0]);
    EXPECT_THAT(plots[0].drawing, Not(HasSubstr("set logscale")));
    return plots[1].drawing;
  };
  EXPECT_THAT(drawing("near", 0.11), HasSubstr("set xrange [0:2.25714]"));
  // For 0.09 s and 2 s the axis begins at the decade below, and ends behind the label of the
  // longest bar.
  EXPECT_THAT(drawing("far", 0.045), AllOf(HasSubstr("set logscale x 10\nset xrange [0.01:3.95"),
                                           HasSubstr("1:2:(0.01):1")));
}

TEST(HeterogeneityPlotTest, HasASpeedUpOfEachSchemeForEachRatio) {
  MadeRuns made;
  std::vector<Setting> settings = two_schemes(made, "ratio-4.toml");
  EXPECT_TRUE(heterogeneity_plots(settings).empty());  // a single ratio gives no curve
  settings.push_back(two_schemes(made, "ratio-16.toml")[0]);
  const auto plots = heterogeneity_plots(settings);
  ASSERT_EQ(plots.size(), 1U);
  EXPECT_THAT(plots[0].data, HasSubstr("$line1 << END\n4 2 2 2\n16 2 2 2\nEND"));
  EXPECT_THAT(plots[0].drawing, AllOf(HasSubstr("set xtics (4, 16)"), HasSubstr("title 'esync'"),
                                      HasSubstr("'speed-up over ssgd (times)'")));
}

TEST(TimeLineTest, IsTheRoundInTheMiddle) {
  MadeRuns made;
  const auto line = middle_round(read_run(made.add("a")).workers);
  ASSERT_TRUE(line);
  EXPECT_NEAR(line->seconds, 1, 1e-9);
  ASSERT_EQ(line->slices.size(), 5U);
  const auto expect = [&](std::size_t i, std::size_t worker, Activity what, double begin,
                          double end) {
    EXPECT_EQ(line->slices[i].worker, worker);
    EXPECT_EQ(line->slices[i].activity, what);
    EXPECT_NEAR(line->slices[i].begin, begin, 1e-9);
    EXPECT_NEAR(line->slices[i].end, end, 1e-9);
  };
  expect(0, 0, Activity::compute, 0, 0.25);
  expect(1, 0, Activity::wait, 0.25, 0.95);
  expect(2, 0, Activity::communicate, 0.95, 1);
  expect(3, 1, Activity::compute, 0, 0.95);
  expect(4, 1, Activity::communicate, 0.95, 1);
}

TEST(TimeLineTest, ShowsWhatFastWorkersDoDuringAStepOfTheSlowest) {
  std::vector<RoundTimes> fast;
  std::vector<RoundTimes> slow;
  for (int i = 1; i <= 12; ++i) {
    fast.push_back({.end = i * 1.0, .data = 0, .compute = i * 2.0, .communicate = 0, .wait = 0});
  }
  for (int i = 1; i <= 3; ++i) {
    slow.push_back({.end = i * 4.0, .data = 0, .compute = i * 4.0, .communicate = 0, .wait = 0});
  }
  const auto line = middle_round({fast, slow});
  ASSERT_TRUE(line);
  EXPECT_EQ(line->seconds, 4);
  ASSERT_EQ(line->slices.size(), 5U);  // four of the fast worker, shortened to their seconds
  EXPECT_EQ(line->slices[0].end, 1);
  EXPECT_EQ(line->slices[4].end, 4);
}

TEST(TimeLineTest, OfAResumedRunHasTheSumsOfItsNewProcess) {
  const auto line =
      middle_round({{{.end = 1, .data = 0, .compute = 0.5, .communicate = 0, .wait = 0},
                     {.end = 2, .data = 0, .compute = 1, .communicate = 0, .wait = 0},
                     {.end = 3, .data = 0, .compute = 0.25, .communicate = 0, .wait = 0.5},
                     {.end = 4, .data = 0, .compute = 0.5, .communicate = 0, .wait = 1},
                     {.end = 5, .data = 0, .compute = 0.75, .communicate = 0, .wait = 1.5}}});
  ASSERT_TRUE(line);
  ASSERT_EQ(line->slices.size(), 2U);
  EXPECT_EQ(line->slices[0].activity, Activity::compute);
  EXPECT_EQ(line->slices[0].end, 0.25);
  EXPECT_EQ(line->slices[1].activity, Activity::wait);
  EXPECT_EQ(line->slices[1].end, 0.75);
}

TEST(TimeLineTest, DrawsNarrowSlicesWithoutBorderAndPattern) {
  MadeRuns made;
  const auto settings = two_schemes(made);
  // In a round of 1 s, 50 ms of communication are wide enough to be drawn.
  EXPECT_THAT(timeline_plot(settings[0])->drawing,
              AllOf(HasSubstr("$panel0_1 using"), Not(HasSubstr("_narrow"))));
  const auto fast = study_of(read_runs({made.add("narrow", {.communicate = 0.005})}), {});
  EXPECT_THAT(timeline_plot(fast[0])->drawing,
              HasSubstr("$panel0_1_narrow using 1:2:1:3:($2-0.38):($2+0.38) with boxxyerror "
                        "fillcolor rgb '#D55E00' fillstyle solid noborder"));
}

TEST(TimeLineTest, IsMissingWithoutRounds) {
  EXPECT_FALSE(middle_round({}));
  EXPECT_FALSE(middle_round({{{.end = 1}}, {}}));
}

TEST(DrawTest, WithoutTheProgramLeavesTheScripts) {
  MadeRuns made;
  const Plot plot{.name = "x", .caption = "", .data = "", .drawing = "plot x\n"};
  EXPECT_THAT(draw({plot}, made.root() / "figures", "no-such-gnuplot"),
              ElementsAre(HasSubstr("gnuplot is not installed")));
  EXPECT_TRUE(fs::exists(made.root() / "figures" / "x.gp"));
}

bool has_gnuplot(const fs::path& folder) {
  return draw({}, folder).empty() && std::system("command -v gnuplot > /dev/null") == 0;
}

TEST(DrawTest, DrawsTheElementsOfEachFigure) {
  MadeRuns made;
  if (!has_gnuplot(made.root())) {
    GTEST_SKIP() << "gnuplot is not installed (Debian: gnuplot-nox)";
  }
  std::vector<Setting> settings = two_schemes(made, "ratio-4.toml");
  settings.push_back(two_schemes(made, "ratio-16.toml")[0]);
  const Report report = report_on(settings, {esync_paper()});
  const fs::path out = made.root() / "out";
  EXPECT_THAT(write_report(settings, report, out), testing::IsEmpty());
  const auto svg = [&](const std::string& name) {
    EXPECT_GT(fs::file_size(out / "figures" / (name + ".png")), 1000U) << name;
    EXPECT_TRUE(read_file(out / "figures" / (name + ".pdf")).starts_with("%PDF-")) << name;
    return read_file(out / "figures" / (name + ".svg"));
  };
  EXPECT_THAT(svg("accuracy-time"),
              AllOf(HasSubstr(">training time (s)<"), HasSubstr(">test accuracy<"),
                    HasSubstr(">ssgd (2 seeds)<"), HasSubstr(">esync<")));
  EXPECT_EQ(count_in(svg("accuracy-time"), "<title>gnuplot_plot_"), 3U);  // two curves and a band
  EXPECT_THAT(svg("throughput"), AllOf(HasSubstr(">throughput (samples/s)<"), HasSubstr(">ssgd<"),
                                       HasSubstr(">esync<"), HasSubstr(">1,000<")));
  EXPECT_THAT(svg("computing-time"),
              AllOf(HasSubstr(">computing time ratio (%)<"), HasSubstr(">0 gpu<"),
                    HasSubstr(">1 cpu<"), HasSubstr(">ssgd<"), HasSubstr(">esync<")));
  EXPECT_THAT(svg("timeline"),
              AllOf(HasSubstr(">ssgd<"), HasSubstr(">esync<"), HasSubstr(">compute<"),
                    HasSubstr(">wait<"), HasSubstr(">communicate<"), HasSubstr(">time (s)<")));
  EXPECT_THAT(svg("speedup-heterogeneity"), AllOf(HasSubstr(">speed-up over ssgd (times)<"),
                                                  HasSubstr(">16<"), HasSubstr(">esync<")));
  const std::string page = read_file(out / "report.html");
  EXPECT_THAT(page,
              AllOf(HasSubstr("<!DOCTYPE html>"), Not(HasSubstr("<script")), Not(HasSubstr("src=")),
                    HasSubstr("id=\"accuracy-time-gnuplot_plot_1\"")));
  EXPECT_EQ(count_in(page, "<svg"), 2 * 9U + 1U);
}

/// The box of a text in an SVG, with the width that it has in a wide font.
struct TextBox {
  std::string text;
  double left = 0;
  double right = 0;
  double top = 0;
  double bottom = 0;

  bool meets(const TextBox& other) const {
    return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
  }
};

std::vector<TextBox> texts_of(const std::string& svg) {
  constexpr double width = 8;
  constexpr double ascent = 11;
  constexpr double descent = 3;
  static const std::regex text(
      R"x(translate\(([-0-9.]+),([-0-9.]+)\)( rotate)?[^>]*text-anchor="(\w+)">)x"
      R"x(\s*<text>(.*?)</text>)x");
  std::vector<TextBox> boxes;
  for (std::sregex_iterator found(svg.begin(), svg.end(), text), end; found != end; ++found) {
    const double x = std::stod((*found)[1]);
    const double y = std::stod((*found)[2]);
    const std::string words =
        std::regex_replace((*found)[5].str(), std::regex("<[^>]*>|^\\s+|\\s+$"), "");
    const double length = width * static_cast<double>(words.size());
    const double before = (*found)[4] == "start" ? 0 : (*found)[4] == "end" ? length : length / 2;
    boxes.push_back((*found)[3].matched
                        ? TextBox{words, x - ascent, x + descent, y - before, y - before + length}
                        : TextBox{words, x - before, x - before + length, y - ascent, y + descent});
  }
  return boxes;
}

/// Describes the texts of a figure that overlap another text or the edges of the figure.
std::vector<std::string> collisions_in(const std::string& svg) {
  static const std::regex size(R"x(viewBox="0 0 (\d+) (\d+)")x");
  std::smatch found;
  std::vector<std::string> collisions;
  if (!std::regex_search(svg, found, size)) {
    return {"no viewBox"};
  }
  const double width = std::stod(found[1]);
  const double height = std::stod(found[2]);
  const std::vector<TextBox> boxes = texts_of(svg);
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    const TextBox& box = boxes[i];
    if (box.left < 0 || box.top < 0 || box.right > width || box.bottom > height) {
      collisions.push_back(box.text + " / edge");
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (box.meets(boxes[j])) {
        collisions.push_back(box.text + " / " + boxes[j].text);
      }
    }
  }
  return collisions;
}

/// Makes two runs of each of `schemes` schemes with long names; every third scheme misses the
/// target.
std::vector<Setting> long_names(MadeRuns& made, std::size_t schemes) {
  std::vector<fs::path> runs;
  for (std::size_t i = 0; i < schemes; ++i) {
    for (std::uint64_t seed = 1; seed <= 2; ++seed) {
      runs.push_back(
          made.add(fmt::format("{}-{}-{}", schemes, i, seed),
                   {.scheme = fmt::format("nbssgd:mini-batches={:0>2}:signal=x", i),
                    .seed = seed,
                    .accuracies = {0.2, i % 3 == 2 ? 0.4 : 0.7, i % 3 == 2 ? 0.5 : 0.8}}));
    }
  }
  return study_of(read_runs(runs), {.target = 0.6});
}

TEST(DrawTest, NoTextMeetsAnother) {
  MadeRuns made;
  if (!has_gnuplot(made.root())) {
    GTEST_SKIP() << "gnuplot is not installed (Debian: gnuplot-nox)";
  }
  for (const std::size_t schemes : {2U, 6U, 9U, 12U}) {
    const std::vector<Setting> settings = long_names(made, schemes);
    const Report report = report_on(settings, {});
    const fs::path figures = made.root() / fmt::format("figures-{}", schemes);
    ASSERT_THAT(draw(report.sections[0].plots, figures), testing::IsEmpty());
    ASSERT_EQ(report.sections[0].plots.size(), 9U);
    for (const Plot& plot : report.sections[0].plots) {
      const std::string svg = read_file(figures / (plot.name + ".svg"));
      EXPECT_GE(texts_of(svg).size(), schemes + 1) << plot.name;
      EXPECT_THAT(collisions_in(svg), testing::IsEmpty()) << plot.name << " of " << schemes;
    }
  }
}

TEST(DrawTest, DrawsAccuraciesOfOne) {
  MadeRuns made;
  if (!has_gnuplot(made.root())) {
    GTEST_SKIP() << "gnuplot is not installed (Debian: gnuplot-nox)";
  }
  const auto settings = study_of(read_runs({made.add("one", {.accuracies = {1}})}), {});
  const Report report = report_on(settings, {});
  EXPECT_THAT(write_report(settings, report, made.root() / "out"), testing::IsEmpty());
  EXPECT_TRUE(fs::exists(made.root() / "out" / "report.html"));
}

TEST(DrawTest, ReportsWhatTheProgramRefusesAndDrawsTheOthers) {
  MadeRuns made;
  if (!has_gnuplot(made.root())) {
    GTEST_SKIP() << "gnuplot is not installed (Debian: gnuplot-nox)";
  }
  const Plot plot{.name = "x", .caption = "", .data = "", .drawing = "plot nonsense_here\n"};
  const Plot sound{.name = "y", .caption = "", .data = "", .drawing = "plot x\n"};
  const fs::path figures = made.root() / "figures";
  fs::create_directories(figures);
  write_file(figures / "x.svg", "of an earlier report");
  EXPECT_THAT(draw({plot, sound}, figures),
              ElementsAre(AllOf(HasSubstr("no figure x: "), HasSubstr("nonsense_here"))));
  EXPECT_FALSE(fs::exists(figures / "x.svg"));
  EXPECT_TRUE(fs::exists(figures / "y.svg"));
}

}  // namespace
}  // namespace syncopate::cli
