/// Somebody else's text in an error.
enum ShownText {
  /// The text, short and without what would act on a terminal.
  static func shown(_ text: some StringProtocol) -> String {
    var shown = String.UnicodeScalarView()
    for scalar in text.unicodeScalars.prefix(200) {
      let isHarmless = scalar.value >= 0x20 && !(0x7F...0x9F).contains(scalar.value) && !scalar.properties.isBidiControl
      shown.append(isHarmless ? scalar : " ")
    }
    return String(shown)
  }
}
