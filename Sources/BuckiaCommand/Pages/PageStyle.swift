/// How a page looks: on a light and on a dark screen, on a narrow one, and on paper.
enum PageStyle {
  /// The content of `<style>`.
  static let text = #"""
    /*<![CDATA[*/
    :root { color-scheme: light dark; \#(PagePalette.light.css) }
    @media (prefers-color-scheme: dark) { :root { \#(PagePalette.dark.css) } }

    * { box-sizing: border-box; }
    [hidden] { display: none !important; }
    html { scroll-padding-top: 6.5rem; }
    body { margin: 0; background: var(--back); color: var(--text); font: 1rem/1.5 system-ui, sans-serif; }
    header, nav, main, footer { max-width: 72rem; margin: 0 auto; padding: 0 1rem; }
    h1 { font-size: 1.5rem; line-height: 1.25; overflow-wrap: anywhere; }
    h2 { font-size: 1.2rem; line-height: 1.25; margin: 2rem 0 0.5rem; overflow-wrap: anywhere; }
    p { margin: 0.5rem 0; }
    a { color: var(--link); }
    :focus-visible { outline: 3px solid var(--focus); outline-offset: 2px; }
    .skip { position: absolute; left: -100vw; padding: 0.5rem 1rem; background: var(--raised); }
    .skip:focus { left: 0; z-index: 2; }
    .unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
    .faint, .rest { color: var(--faint); }

    dl { display: grid; grid-template-columns: max-content 1fr; gap: 0.15rem 1rem; margin: 0; }
    dt { color: var(--faint); }
    dd { margin: 0; overflow-wrap: anywhere; }

    .tools {
      position: sticky; top: 0; z-index: 1; display: flex; flex-wrap: wrap; align-items: center; gap: 0.5rem 1rem;
      width: calc(100% - 2rem); max-width: 70rem; min-height: 3.25rem; margin: 0.5rem auto 0; padding: 0.5rem 0;
      background: var(--back); border-bottom: 1px solid var(--line);
    }
    .tools input[type="search"] {
      font: inherit; color: inherit; background: var(--raised); border: 1px solid var(--line); border-radius: 0.25rem;
      padding: 0.25rem 0.5rem; min-width: 12rem; flex: 0 1 24rem;
    }
    summary { cursor: pointer; padding: 0.25rem 0; color: var(--link); }
    .keys { max-width: 72rem; margin: 0 auto; padding: 0 1rem; }
    kbd { font: 0.9em ui-monospace, monospace; border: 1px solid var(--line); border-radius: 0.25rem; padding: 0 0.3em; }

    table { border-collapse: collapse; width: 100%; }
    th, td { text-align: start; vertical-align: top; font-weight: normal; padding: 0.25rem 0.5rem; overflow-wrap: anywhere; }
    thead th { color: var(--faint); border-bottom: 1px solid var(--line); }
    nav[aria-label="Tables"] { overflow-x: auto; }
    .contents { width: auto; }
    .contents thead th { overflow-wrap: normal; text-align: end; }
    .contents thead th:first-child { text-align: start; }
    .contents tbody th { min-width: 9rem; }
    .contents td { text-align: end; white-space: nowrap; font-variant-numeric: tabular-nums; }
    .entries { table-layout: fixed; }
    .entries thead th { position: sticky; top: 3.25rem; background: var(--back); box-baseline: inset 0 -1px var(--line); }
    .tools[hidden] ~ main .entries thead th { top: 0; }
    .entries thead th:first-child { width: 20%; }
    .entries tbody { border-bottom: 1px solid var(--line); }
    .entries tbody th[scope="row"] { color: var(--faint); }
    .entries td { font-family: ui-monospace, monospace; font-size: 0.9rem; }
    .heading th { background: var(--raised); font-weight: 600; }
    .heading p { font-weight: normal; margin: 0.15rem 0 0; }
    .sign { font-weight: 600; }
    .inserted .sign, .resolved .sign { color: var(--inserted); }
    .updated .sign, .open .sign { color: var(--updated); }
    .deleted .sign { color: var(--deleted); }
    .null, .absent, .size { color: var(--faint); }
    .null, .absent { font-style: italic; }
    mark { background: var(--mark); color: inherit; text-decoration: underline; text-decoration-thickness: 1px; }
    .fold[open] { content-visibility: auto; contain-intrinsic-block-size: auto 400rem; }
    img { display: block; max-width: 100%; max-height: 20rem; width: auto; height: auto; margin: 0 0 0.25rem; }
    pre { overflow-wrap: anywhere; white-space: pre-wrap; background: var(--raised); padding: 0.5rem; margin: 0.5rem 0; }

    @media (max-width: 40rem) {
      dl { grid-template-columns: 1fr; }
      dd { margin-bottom: 0.35rem; }
      th, td { padding: 0.2rem 0.25rem; }
      .tools { position: static; }
      html { scroll-padding-top: 5.5rem; }
      .contents { font-size: 0.85rem; }
      .entries, .entries > thead, .entries > tbody { display: block; }
      .entries > thead { position: sticky; top: 0; }
      .entries > * > tr { display: flex; flex-wrap: wrap; }
      .entries > tbody > tr > th { flex: 0 0 100%; }
      .entries > tbody > tr > td, .entries > thead > tr > th { flex: 1 1 0; min-width: 0; }
      .entries > thead > tr > th { position: static; font-size: 0.85rem; }
      .entries > thead > tr > th:first-child { display: none; }
      .entries > tbody > tr > th[scope="row"] { padding-bottom: 0; font-size: 0.85rem; }
    }
    @media print {
      :root { color-scheme: light; \#(PagePalette.light.css) }
      html { font-size: 10pt; }
      .skip, .tools, .keys { display: none; }
      .fold[open] { content-visibility: visible; }
      .entries thead th { position: static; }
      header, nav, main, footer { max-width: none; padding: 0; }
      a { color: inherit; text-decoration: none; }
      h2 { break-after: avoid; }
      tbody { break-inside: avoid; }
      img { max-height: 8cm; }
    }
    /*]]>*/
    """#
}

/// The colours of a page, of which there are two sets: for a light and for a dark screen.
///
/// Every colour of text has a contrast of at least 4.5 to 1 against each of its backgrounds, as level AA of [WCAG
/// 2.2](https://www.w3.org/TR/WCAG22/#contrast-minimum) requires; a test computes it.
struct PagePalette: Sendable {
  /// A colour, as a number of six hexadecimal digits.
  typealias Color = UInt32

  /// The colours of text, by name.
  let texts: [(name: String, color: Color)]
  /// The backgrounds of text, by name.
  let backgrounds: [(name: String, color: Color)]
  /// The colours of lines and of the mark around the element with the keyboard focus.
  let lines: [(name: String, color: Color)]

  /// For a light screen, and for paper.
  static let light = PagePalette(
    texts: [
      ("text", 0x1B1F24), ("faint", 0x515963), ("link", 0x0A4FA3), ("inserted", 0x0F5B26), ("updated", 0x724700),
      ("deleted", 0x9B1226),
    ],
    backgrounds: [("back", 0xFFFFFF), ("raised", 0xF3F5F8), ("mark", 0xFFEFB0)],
    lines: [("line", 0x858E99), ("focus", 0x0A4FA3)])

  /// For a dark screen.
  static let dark = PagePalette(
    texts: [
      ("text", 0xE8EDF2), ("faint", 0xAEB7C1), ("link", 0x8CC4FF), ("inserted", 0x66D97F), ("updated", 0xE8BC57),
      ("deleted", 0xFF9C94),
    ],
    backgrounds: [("back", 0x0F1318), ("raised", 0x181E25), ("mark", 0x4A3A08)],
    lines: [("line", 0x7B8591), ("focus", 0x8CC4FF)])

  /// The colours as properties of a style sheet.
  var css: String {
    (texts + backgrounds + lines).map { "--\($0.name): #\(Self.hexadecimal($0.color));" }.joined(separator: " ")
  }

  private static func hexadecimal(_ color: Color) -> String {
    let digits = String(color, radix: 16)
    return String(repeating: "0", count: 6 - digits.count) + digits
  }
}

/// How forms and messages look on the pages of a server.
extension PageStyle {
  static let siteText = #"""
    /*<![CDATA[*/
    .site { display: flex; flex-wrap: wrap; gap: 0.25rem 1.25rem; padding: 0.75rem 0 0; }
    .site a[aria-current] { color: var(--text); font-weight: 600; text-decoration: none; }
    .message {
      border: 2px solid var(--line); border-inline-start-width: 0.5rem; background: var(--raised);
      padding: 0.25rem 0.75rem; margin: 0.5rem 0;
    }
    .message.good { border-color: var(--inserted); }
    .message.bad { border-color: var(--deleted); }
    .message p { overflow-wrap: anywhere; white-space: pre-wrap; }
    .news { max-width: 72rem; margin: 0 auto; padding: 0 1rem; }
    .news span:not(:empty) { font-weight: 600; }
    button, select, textarea {
      font: inherit; color: inherit; background: var(--raised); border: 1px solid var(--line); border-radius: 0.25rem;
      padding: 0.3rem 0.75rem; min-height: 2rem;
    }
    button { cursor: pointer; }
    textarea { font: 0.9rem/1.4 ui-monospace, monospace; width: 100%; min-height: 2.5rem; resize: vertical; }
    form { display: flex; flex-wrap: wrap; align-items: center; gap: 0.4rem 1rem; margin: 0.25rem 0; }
    form table, form .whole { flex: 1 0 100%; }
    .actions td { font: inherit; }
    .files { table-layout: auto; }
    .files tbody { border-bottom: 1px solid var(--line); }
    .files td { font-variant-numeric: tabular-nums; }
    .files td, .files thead th { overflow-wrap: break-word; }
    .files p { margin: 0.15rem 0; }
    .good .sign { color: var(--inserted); }
    .notable .sign { color: var(--updated); }
    .bad .sign { color: var(--deleted); }
    .choices { display: flex; flex-wrap: wrap; gap: 0.15rem 1rem; margin: 0.25rem 0; }
    .choices [aria-current] { color: var(--text); font-weight: 600; text-decoration: none; }
    @media (max-width: 40rem) {
      .files { font-size: 0.85rem; }
      .files > thead { display: none; }
      .files, .files > tbody, .files > tbody > tr { display: block; }
      .files > tbody > tr > th { display: block; }
      .files > tbody > tr > td { display: inline-block; }
      .files > tbody > tr > td[data-name]::before { content: attr(data-name) ": "; color: var(--faint); }
      button, select { max-width: 100%; }
      form table { table-layout: fixed; }
      form thead th { overflow-wrap: normal; }
      form thead th:nth-child(2) { width: 30%; }
      form thead th:last-child { width: 40%; }
    }
    @media print { .site, .news, form, .choices { display: none; } }
    /*]]>*/
    """#
}
