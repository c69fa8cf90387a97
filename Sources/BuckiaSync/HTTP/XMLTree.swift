import BuckiaStorage
import Foundation

#if canImport(FoundationXML)
  import FoundationXML
#endif

/// An element of an XML document from a server, with its content.
///
/// Names are without prefixes and namespaces: of the few documents that are read here, no two elements differ by these alone.
struct XMLTree: Sendable, Equatable {
  /// The element's name.
  let name: String
  /// Its elements.
  var children: [XMLTree] = []
  /// Its text, with that of its elements left out.
  var text = ""

  /// The first element of that name.
  subscript(name: String) -> XMLTree? { children.first { $0.name == name } }

  /// All elements of that name.
  func all(_ name: String) -> [XMLTree] { children.filter { $0.name == name } }

  /// The text of the first element of that name, without spaces around it.
  func text(of name: String) -> String? { self[name]?.text.trimmingCharacters(in: .whitespacesAndNewlines) }

  /// How deep elements may lie in each other.
  private static let depthLimit = 32

  /// Reads a document without a document type, which has no entities of its own and no external content.
  ///
  /// - Throws: `StorageError` with `invalidAnswer` when it is not well-formed.
  static func parse(_ bytes: [UInt8]) throws(StorageError) -> XMLTree {
    let data = Data(bytes)
    // The next check would miss another encoding. XML has no zero bytes, but UTF-16 and UTF-32 do.
    guard !bytes.contains(0), isUTF8(bytes) else {
      throw StorageError(.invalidAnswer, "the server's answer is XML in another encoding than UTF-8, which is not read")
    }
    // No storage needs a document type, whose entities can make a small document huge.
    guard data.range(of: Data("<!DOCTYPE".utf8)) == nil else {
      throw StorageError(.invalidAnswer, "the server's answer is XML with a document type, which is not read")
    }
    let parser = XMLParser(data: data)
    parser.shouldResolveExternalEntities = false
    parser.shouldProcessNamespaces = true
    let builder = Builder()
    parser.delegate = builder
    guard parser.parse(), builder.fault == nil, let root = builder.root else {
      throw StorageError(
        .invalidAnswer,
        "the server's answer is no XML that can be read: \(builder.fault ?? "line \(parser.lineNumber) is wrong")")
    }
    return root
  }

  /// True if the declaration at the beginning of a document names no other encoding.
  private static func isUTF8(_ bytes: [UInt8]) -> Bool {
    let start = String(decoding: bytes.prefix(200), as: UTF8.self)
    guard let declaration = start.range(of: "<?xml"), let end = start.range(of: "?>"),
      declaration.upperBound < end.lowerBound,
      let name = start[declaration.upperBound..<end.lowerBound].range(of: "encoding")
    else { return true }
    let value = start[name.upperBound..<end.lowerBound].split { " =\"'\t\r\n".contains($0) }.first ?? ""
    return ["utf-8", "us-ascii"].contains(value.lowercased())
  }

  /// Puts the tree together while the parser reads.
  private final class Builder: NSObject, XMLParserDelegate {
    private var open: [XMLTree] = []
    private(set) var root: XMLTree?
    private(set) var fault: String?

    func parser(
      _ parser: XMLParser, didStartElement name: String, namespaceURI: String?, qualifiedName: String?,
      attributes: [String: String]
    ) {
      guard open.count < depthLimit else {
        fault = "elements lie too deep in each other"
        parser.abortParsing()
        return
      }
      open.append(XMLTree(name: name))
    }

    func parser(_ parser: XMLParser, foundCharacters text: String) {
      guard !open.isEmpty else { return }
      open[open.count - 1].text += text
    }

    func parser(_ parser: XMLParser, foundCDATA block: Data) {
      guard !open.isEmpty else { return }
      open[open.count - 1].text += String(decoding: block, as: UTF8.self)
    }

    func parser(_ parser: XMLParser, didEndElement name: String, namespaceURI: String?, qualifiedName: String?) {
      guard let element = open.popLast() else { return }
      if open.isEmpty { root = element } else { open[open.count - 1].children.append(element) }
    }
  }
}
