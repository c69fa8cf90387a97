import Crypto

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// What a browser may do with a page: show it, run the one script that we have put into it, and nothing else.
///
/// The page has no address of its own, so the policy stands in the page, before everything that it is about. It follows
/// [CSP Level 3](https://www.w3.org/TR/CSP3/): scripts and styles are allowed by the SHA-256 of their bytes, images as bytes in the page.
package enum ContentSecurityPolicy {
  /// The policy of a page with this style and this script.
  ///
  /// - Parameters:
  ///   - style: What stands between `<style>` and `</style>`.
  ///   - script: What stands between `<script>` and `</script>`.
  package static func text(style: String, script: String) -> String {
    policy(style: style, script: script, formAction: "'none'")
  }

  /// The policy of a page that a server hands out: it may send forms to that server and ask it for its state, too, and
  /// stands in no other page.
  ///
  /// - Parameters:
  ///   - style: What stands between `<style>` and `</style>`.
  ///   - script: What stands between `<script>` and `</script>`.
  package static func served(style: String, script: String) -> String {
    policy(style: style, script: script, formAction: "'self'") + "; connect-src 'self'; frame-ancestors 'none'"
  }

  private static func policy(style: String, script: String, formAction: String) -> String {
    [
      "default-src 'none'", "script-src '\(source(script))'", "style-src '\(source(style))'", "img-src data:",
      "base-uri 'none'", "form-action \(formAction)", "require-trusted-types-for 'script'", "trusted-types 'none'",
    ].joined(separator: "; ")
  }

  /// How the policy names a text that is a part of the page.
  private static func source(_ text: String) -> String {
    "sha256-\(Data(SHA256.hash(data: Data(text.utf8))).base64EncodedString())"
  }
}
