import Foundation

/// axe-core, whose [rules](https://github.com/dequelabs/axe-core/blob/develop/doc/rule-descriptions.md) describe
/// obstacles to using a page.
package enum AxeCore {
  private static let path: String? = {
    let root = URL(fileURLWithPath: #filePath).appendingPathComponent("../../../.build/servers/axe/lib")
      .standardizedFileURL.path
    let pythons = (try? FileManager.default.contentsOfDirectory(atPath: root)) ?? []
    return pythons.map { "\(root)/\($0)/site-packages/axe_playwright_python/axe.min.js" }
      .first { FileManager.default.isReadableFile(atPath: $0) }
  }()

  /// True if axe-core is installed, and a browser that runs it.
  package static var isInstalled: Bool { path != nil && HeadlessBrowser.isInstalled }
  /// Why tests that need axe-core do not run.
  package static var requirement: String {
    HeadlessBrowser.isInstalled
      ? "axe-core is not there (Tests/Servers/prepare installs it)" : HeadlessBrowser.requirement
  }

  fileprivate static func script() throws -> String {
    guard let path else { throw HeadlessBrowser.Failure(description: requirement) }
    return try String(contentsOfFile: path, encoding: .utf8)
  }

  /// Runs the rules of WCAG 2.0 to 2.2 on the levels A and AA, and those of best practice.
  fileprivate static let run = """
    (async () => {
      for (const part of document.querySelectorAll("details")) part.open = true;
      // axe cannot tell what stands behind text that is not drawn, or that something has been scrolled over.
      scrollTo(0, 0);
      const sheet = document.styleSheets[0];
      sheet.insertRule("details { content-visibility: visible !important; }", sheet.cssRules.length);
      const tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
      const { violations, incomplete } =
        await axe.run(document, { runOnly: tags, resultTypes: ["violations", "incomplete"] });
      const lines = (rules) => rules.flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) =>
        `${id}: ${html.slice(0, 160)}: ${failureSummary.replace(/\\s+/g, " ")}`));
      // It does not judge arrows, and does not know which cells the heading of an entry belongs to.
      const open = lines(incomplete).filter((line) =>
        !line.endsWith("Element content contains only non-text characters")
          && !line.startsWith('th-has-data-cells: <table class="entries">'));
      return lines(violations).concat(open);
    })()
    """
}

extension HeadlessBrowser {
  /// The faults that axe-core finds in the page as shown now, unfolded, and its undecided cases: one per element.
  package func accessibilityFaults() throws -> [String] {
    // The page's policy only restricts the page itself.
    if try text("typeof axe") == "undefined" { try send("Runtime.evaluate", ["expression": AxeCore.script()]) }
    guard let faults = try evaluate(AxeCore.run) as? [String] else { throw Failure(description: "axe says nothing") }
    return faults
  }
}
