/// The screen on which a page is shown.
package enum PageScreen: String, CaseIterable, Sendable {
  case light, dark, narrow, paper

  /// The width in pixels: 320 on the narrowest screen that [WCAG](https://www.w3.org/TR/WCAG22/#reflow) considers.
  fileprivate var width: Int { self == .narrow ? 320 : 1280 }
}

extension HeadlessBrowser {
  /// Shows the page on another kind of screen.
  package func show(on screen: PageScreen) throws {
    try send(
      "Emulation.setDeviceMetricsOverride",
      ["width": screen.width, "height": 640, "deviceScaleFactor": 1, "mobile": false])
    try emulate(media: screen == .paper ? "print" : "", colorScheme: screen == .dark ? "dark" : "light")
  }
}
