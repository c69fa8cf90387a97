import Foundation

/// Horizontal bars in groups, as an SVG for light and dark pages.
struct BarChart {
  /// One bar.
  struct Bar {
    let label: String
    let value: Double
    /// The text after the bar: the value with its unit.
    let text: String
    /// True if it is Buckia's.
    let isSubject: Bool
  }

  /// The bars of one comparison.
  struct Group {
    let label: String
    let bars: [Bar]
  }

  let title: String
  /// What the lengths mean, and whether shorter is better.
  let legend: String
  let groups: [Group]
  /// The comparisons that are in it.
  let ids: Set<String>

  private static let margin = 20.0
  private static let barHeight = 16.0
  private static let barGap = 6.0
  private static let groupGap = 18.0
  private static let barSpace = 380.0
  private static let gap = 10.0

  var svg: String {
    let labels = groups.flatMap { $0.bars.map { Self.width($0.label, size: 12) } }.max() ?? 0
    let values = groups.flatMap { $0.bars.map { Self.width($0.text, size: 12) } }.max() ?? 0
    let start = Self.margin + labels + Self.gap
    let headings =
      ([Self.width(title, size: 16), Self.width(legend, size: 12)] + groups.map { Self.width($0.label, size: 13) })
      .max()
      ?? 0
    let width = max(start + Self.barSpace + Self.gap + values, Self.margin + headings) + Self.margin
    let greatest = groups.flatMap(\.bars).map(\.value).max() ?? 1

    var body: [String] = []
    var y = Self.margin + 16
    body.append(Self.text(title, x: Self.margin, y: y, kind: "title"))
    y += 20
    body.append(Self.text(legend, x: Self.margin, y: y, kind: "legend"))
    for group in groups {
      y += Self.groupGap + 14
      body.append(Self.text(group.label, x: Self.margin, y: y, kind: "group"))
      y += 8
      for bar in group.bars {
        // An invisible bar would look like a missing one.
        let length = max(1, Self.barSpace * bar.value / greatest)
        body.append(Self.text(bar.label, x: start - Self.gap, y: y + 12, kind: "label"))
        body.append(
          #"<rect class="\#(bar.isSubject ? "subject" : "other")" x="\#(Self.number(start))" y="\#(Self.number(y))" "#
            + #"width="\#(Self.number(length))" height="\#(Self.number(Self.barHeight))" rx="2"/>"#)
        body.append(Self.text(bar.text, x: start + length + Self.gap, y: y + 12, kind: bar.isSubject ? "own" : "value"))
        y += Self.barHeight + Self.barGap
      }
    }
    let height = y + Self.margin - Self.barGap
    let size = #"width="\#(Self.number(width))" height="\#(Self.number(height))""#
    return """
      <svg xmlns="http://www.w3.org/2000/svg" \(size) viewBox="0 0 \(Self.number(width)) \(Self.number(height))" role="img">
      <title>\(Self.escaped(title))</title>
      <style>
      \(Self.style)
      </style>
      <rect class="page" x="0.5" y="0.5" width="\(Self.number(width - 1))" height="\(Self.number(height - 1))" rx="6"/>
      \(body.joined(separator: "\n"))
      </svg>

      """
  }

  /// With a background of its own, so that the text is readable on any page.
  private static let style = """
    text { font-family: system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; font-size: 12px; fill: #1f2328; }
    .title { font-size: 16px; font-weight: 600; }
    .group { font-size: 13px; font-weight: 600; }
    .own { font-weight: 600; }
    .legend { fill: #59636e; }
    .label { text-anchor: end; }
    .page { fill: #ffffff; stroke: #d1d9e0; }
    .subject { fill: #0969da; }
    .other { fill: #afb8c1; }
    @media (prefers-color-scheme: dark) {
      text { fill: #f0f6fc; }
      .legend { fill: #9198a1; }
      .page { fill: #0d1117; stroke: #3d444d; }
      .subject { fill: #4493f8; }
      .other { fill: #59636e; }
    }
    """

  private static func text(_ text: String, x: Double, y: Double, kind: String) -> String {
    #"<text class="\#(kind)" x="\#(number(x))" y="\#(number(y))">\#(escaped(text))</text>"#
  }

  private static func number(_ value: Double) -> String {
    let rounded = (value * 10).rounded() / 10
    return rounded == rounded.rounded() ? String(Int(rounded)) : String(rounded)
  }

  /// The maximum width of a text: in the widest common font a letter takes two thirds of the font size on average.
  private static func width(_ text: String, size: Double) -> Double { Double(text.count) * size * 0.66 }

  private static func escaped(_ text: String) -> String {
    var escaped = ""
    for character in text {
      switch character {
      case "&": escaped += "&amp;"
      case "<": escaped += "&lt;"
      case ">": escaped += "&gt;"
      default: escaped.append(character)
      }
    }
    return escaped
  }
}
