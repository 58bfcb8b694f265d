// Pictures are well-formed, whatever is in them, and show what they are given inside their edges.
#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/support/xml.h"
#include "tools/replay/curve_plot.h"
#include "tools/replay/label_placer.h"
#include "tools/replay/replay_plot.h"
#include "tools/replay/svg_writer.h"

namespace hearth::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<XmlElement> elements_of(const std::string& svg) {
  std::optional<std::vector<XmlElement>> elements = XmlReader(svg).read();
  EXPECT_TRUE(elements) << svg;
  return elements ? std::move(*elements) : std::vector<XmlElement>();
}

std::vector<std::string> texts_of(const std::vector<XmlElement>& elements) {
  std::vector<std::string> texts;
  for (const XmlElement& element : elements)
    if (element.name == "text") texts.push_back(element.text);
  return texts;
}

size_t count(const std::vector<XmlElement>& elements,
             const std::function<bool(const XmlElement&)>& wanted) {
  return static_cast<size_t>(std::ranges::count_if(elements, wanted));
}

// Everything is finite and within the picture.
void expect_inside(const std::vector<XmlElement>& elements) {
  ASSERT_FALSE(elements.empty());
  const double width = elements[0].number("width"), height = elements[0].number("height");
  for (const XmlElement& element : elements)
    for (const auto& [attribute, value] : element.attributes) {
      EXPECT_EQ(value.find("nan"), std::string::npos) << element.name << ' ' << attribute;
      EXPECT_EQ(value.find("inf"), std::string::npos) << element.name << ' ' << attribute;
      const bool horizontal =
          attribute == "x" || attribute == "x1" || attribute == "x2" || attribute == "cx";
      const bool vertical =
          attribute == "y" || attribute == "y1" || attribute == "y2" || attribute == "cy";
      if (!horizontal && !vertical) continue;
      EXPECT_GE(element.number(attribute), 0) << element.name << ' ' << element.text;
      EXPECT_LE(element.number(attribute), horizontal ? width : height)
          << element.name << ' ' << element.text;
    }
}

TEST(XmlReader, RefusesWhatIsNotWellFormed) {
  EXPECT_TRUE(XmlReader("<a b=\"1 &lt; 2\"><c/>x &amp; y</a>\n").read());
  for (const char* wrong :
       {"", "<a>", "<a></b>", "<a b=1/>", "<a b=\"1\"c=\"2\"/>", "<a b=\"1\" b=\"2\"/>", "<a>&</a>",
        "<a>&nbsp;</a>", "<a b=\"<\"/>", "<a>\x01</a>", "<a>\xff</a>", "<a/><b/>", "x"})
    EXPECT_FALSE(XmlReader(wrong).read()) << wrong;
}

TEST(SvgWriter, AnyTextIsValid) {
  const std::string nasty = "<&\"'> \x01\x7f\n \xff\xc3 \xef\xbf\xbf ]]> µ";
  SvgWriter svg(100, 50, nasty);
  svg.text({1, 2}, nasty, "small", TextAnchor::kEnd);
  svg.upward_text({1, 2}, nasty);
  const auto elements = elements_of(std::move(svg).finish());
  EXPECT_EQ(elements.front().name, "svg");
  EXPECT_THAT(texts_of(elements),
              Contains("<&\"'>     \xef\xbf\xbd\xef\xbf\xbd \xef\xbf\xbd ]]> µ").Times(2));
}

TEST(SvgWriter, LongTextsAreCut) {
  EXPECT_EQ(fitting_text("short", 1000), "short");
  const std::string cut = fitting_text(std::string(200, 'x'), 100);
  EXPECT_THAT(cut, ::testing::EndsWith("..."));
  EXPECT_LE(text_width(cut), 100);
  // Not in the middle of a character.
  for (double width = 40; width < 80; width += 1) {
    const std::string greek = fitting_text("ααααααααααααααα", width);
    EXPECT_EQ(greek, xml_text(greek));
  }
}

TEST(LabelPlacer, LabelsDoNotCoverEachOther) {
  LabelPlacer placer({0, 0, 400, 300});
  std::vector<PlotBox> boxes;
  for (int i = 0; i < 8; ++i) {
    const LabelPlacer::Label label = placer.place({200, 150.0 + i}, 5, 30, 15);
    for (const PlotBox& other : boxes) EXPECT_FALSE(label.box.overlaps(other));
    boxes.push_back(label.box);
  }
  EXPECT_LT(boxes[0].bottom, 150) << "above the point if possible";
}

TEST(LabelPlacer, LabelsStayInside) {
  const PlotBox area{0, 0, 400, 300};
  for (const SvgPoint corner : {SvgPoint{0, 0}, {400, 0}, {0, 300}, {400, 300}}) {
    LabelPlacer placer(area);
    EXPECT_TRUE(area.contains(placer.place(corner, 5, 30, 15).box));
  }
}

Summary times(double p50, double p99) { return {.mean = p50, .p50 = p50, .p90 = p99, .p99 = p99}; }

CurvePlot curve() {
  return {.title = "Latency <of> a & b",
          .subtitle = {"a trace", "a <device>"},
          .parameter = "max-seqs",
          .points = {{"1", 120, times(2, 4), times(0.01, 0.02)},
                     {"2", 230, times(1, 2), times(0.015, 0.03)},
                     {"4", 410, times(0.5, 0.9), times(0.02, 0.05)},
                     {"8", 450, times(0.4, 0.8), times(0.03, 0.2)}},
          .best = 2,
          .goal = {.time_to_first_token = 1, .time_between_tokens = 0.1}};
}

TEST(CurvePlot, ShowsEveryPointTheGoalAndTheBest) {
  const auto elements = elements_of(draw_curve(curve()));
  expect_inside(elements);
  const auto texts = texts_of(elements);
  EXPECT_THAT(texts, Contains("Latency <of> a & b"));
  for (const char* label : {"1", "2", "8"}) {
    const auto labels = count(elements, [&](const XmlElement& element) {
      return element.name == "text" && element.has_class("halo") && element.text == label;
    });
    EXPECT_GE(labels, 2u) << label << " in both diagrams";
  }
  EXPECT_THAT(texts, Contains("max-seqs = 4").Times(::testing::Ge(2)));
  EXPECT_THAT(texts, Contains("SLO 1 s"));
  EXPECT_THAT(texts, Contains("SLO 100 ms"));
  EXPECT_THAT(texts, Contains("Throughput, generated tokens/s"));
  EXPECT_THAT(texts, Contains("Time to first token (TTFT), s"));
  EXPECT_THAT(texts, Contains("Time between tokens (TBT), ms"));
  // Four points in two diagrams, and the legend.
  EXPECT_EQ(count(elements,
                  [](const XmlElement& element) {
                    return element.name == "circle" && element.has_class("p50");
                  }),
            9u);
  EXPECT_EQ(count(elements,
                  [](const XmlElement& element) {
                    return element.name == "rect" && element.has_class("p99");
                  }),
            9u);
  EXPECT_EQ(count(elements,
                  [](const XmlElement& element) {
                    return element.name == "circle" && element.has_class("best");
                  }),
            5u);
}

TEST(CurvePlot, MoreThroughputIsFurtherRightAndMoreTimeHigherUp) {
  const auto elements = elements_of(draw_curve(curve()));
  std::vector<SvgPoint> points;  // p50: the legend, TTFT, TBT
  for (const XmlElement& element : elements)
    if (element.name == "circle" && element.has_class("p50"))
      points.push_back({element.number("cx"), element.number("cy")});
  ASSERT_EQ(points.size(), 9u);
  for (size_t i = 1; i < 4; ++i) {
    EXPECT_LT(points[i].x, points[i + 1].x);
    EXPECT_LT(points[i].y, points[i + 1].y) << "TTFT goes down";
    EXPECT_GT(points[i + 4].y, points[i + 5].y) << "TBT goes up";
    EXPECT_EQ(points[i].x, points[i + 4].x);
  }
}

TEST(CurvePlot, AnyShapeOfDataIsDrawn) {
  const CurvePlot::Point usual{"16", 500, times(0.5, 1), times(0.02, 0.04)};
  const CurvePlot::Point nothing{"1", 0, {}, {}};
  const CurvePlot::Point outlier{"64", 510, times(0.6, 4000), times(0.02, 90)};
  for (const std::vector<CurvePlot::Point>& points : {std::vector{usual},
                                                      {usual, usual, usual},
                                                      {nothing},
                                                      {nothing, usual},
                                                      {usual, outlier},
                                                      {outlier, outlier}}) {
    CurvePlot plot = curve();
    plot.points = points;
    plot.best.reset();
    const auto elements = elements_of(draw_curve(plot));
    expect_inside(elements);
    EXPECT_THAT(texts_of(elements), Contains("no point has both p99 within the SLO"));
  }
}

TEST(CurvePlot, PointsOnTopOfEachOtherShareALabel) {
  CurvePlot plot = curve();
  for (size_t i = 1; i < 4; ++i) {
    plot.points[i] = plot.points[2];
    plot.points[i].label = std::to_string(1 << i);
  }
  const auto texts = texts_of(elements_of(draw_curve(plot)));
  EXPECT_THAT(texts, Contains("2, 8").Times(::testing::Ge(2)));
  EXPECT_THAT(texts, Contains("max-seqs = 4").Times(::testing::Ge(2)));
}

TEST(CurvePlot, AGoalThatIsFarAwayIsNamedInstead) {
  CurvePlot plot = curve();
  plot.goal = {.time_to_first_token = 100, .time_between_tokens = 50};
  const auto texts = texts_of(elements_of(draw_curve(plot)));
  EXPECT_THAT(texts, Contains("SLO 100 s is above this axis"));
  EXPECT_THAT(texts, Contains("SLO 50 s is above this axis"));
}

TEST(CurvePlot, TimesOfManySizesGetALogarithmicAxis) {
  CurvePlot plot = curve();
  plot.points[0].ttft = times(90, 400);
  EXPECT_THAT(texts_of(elements_of(draw_curve(plot))),
              Contains("Time to first token (TTFT), s (log)"));
}

ReplayReport report(std::string policy, double throughput, double ttft, double padding) {
  ReplayReport report;
  report.policy = std::move(policy);
  report.throughput_tokens_per_s = throughput;
  report.ttft = times(ttft, ttft * 3);
  report.e2e = times(ttft * 2, ttft * 6);
  report.padding_share = padding;
  return report;
}

TEST(PolicyPlot, HasABarForEachNumber) {
  const std::vector<ReplayReport> reports = {
      report("static", 300, 0.4, 0.41),
      report("continuous+kv=reserve+preemption=swap", 450, 0.2, 0)};
  const auto elements = elements_of(draw_policies(
      {.title = "Policies", .subtitle = {"a <trace>"}, .reports = reports, .goal = {}}));
  expect_inside(elements);
  const auto texts = texts_of(elements);
  EXPECT_THAT(texts, Contains("static"));
  EXPECT_THAT(texts, Contains("continuous+kv=reserve"));
  EXPECT_THAT(texts, Contains("+preemption=swap")) << "long names go over two lines";
  EXPECT_THAT(texts, Contains("Time to first token, s"));
  EXPECT_THAT(texts, Contains("450"));
  EXPECT_THAT(texts, Contains("41"));
  const auto bars = [&](const char* colour) {
    return count(elements, [&](const XmlElement& element) {
      return element.name == "rect" && element.has_class(colour);
    });
  };
  EXPECT_EQ(bars("plain"), 4u);
  EXPECT_EQ(bars("p50"), 5u);
  EXPECT_EQ(bars("p99"), 5u);
  // The longer bar is the larger number.
  std::vector<double> widths;
  for (const XmlElement& element : elements)
    if (element.name == "rect" && element.has_class("plain"))
      widths.push_back(element.number("width"));
  EXPECT_NEAR(widths[0] / widths[1], 300.0 / 450, 0.01);
  EXPECT_EQ(widths[3], 0);
}

TEST(PolicyPlot, AnyShapeOfDataIsDrawn) {
  for (const std::vector<ReplayReport>& reports :
       {std::vector{report("static", 0, 0, 0)},
        {report("static", 1e6, 1e5, 1)},
        {report("a", 1, 1, 0), report(std::string(300, 'b'), 1e9, 1e9, 0.5)},
        std::vector(12, report("continuous+kv=reserve", 10, 0.01, 0.1))})
    expect_inside(elements_of(
        draw_policies({.title = "Policies", .subtitle = {}, .reports = reports, .goal = {}})));
}

TEST(ReplayPlot, IsWrittenAndFailuresAreReported) {
  const std::string path = ::testing::TempDir() + "/plot_test." + std::to_string(getpid()) + ".svg";
  ASSERT_TRUE(check_writable(path).ok());
  ASSERT_TRUE(write_plot(path, "<svg/>").ok());
  ASSERT_TRUE(check_writable(path).ok()) << "checking leaves what is there";
  ASSERT_TRUE(write_plot(path, "<a/>").ok());
  std::FILE* file = std::fopen(path.c_str(), "rb");
  ASSERT_NE(file, nullptr);
  char text[16] = {};
  EXPECT_EQ(std::fread(text, 1, sizeof(text), file), 4u);
  std::fclose(file);
  EXPECT_STREQ(text, "<a/>");
  std::remove(path.c_str());
  const Status missing = check_writable("/no/such/folder/a.svg");
  ASSERT_FALSE(missing.ok());
  EXPECT_THAT(missing.error().message, HasSubstr("/no/such/folder/a.svg"));
  const Status full = write_plot("/dev/full", std::string(100, 'x'));
  ASSERT_FALSE(full.ok());
  EXPECT_THAT(full.error().message, HasSubstr("cannot write /dev/full"));
  EXPECT_EQ(check_plot_name("a.svg"), "");
  EXPECT_THAT(check_plot_name("a.png"), HasSubstr(".svg"));
  EXPECT_THAT(check_plot_name(""), HasSubstr(".svg"));
}

}  // namespace
}  // namespace hearth::testing
