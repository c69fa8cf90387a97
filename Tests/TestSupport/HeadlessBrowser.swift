import BuckiaBytes
import Foundation

/// Chromium without a window, controlled over two pipes.
///
/// It speaks the [DevTools protocol](https://chromedevtools.github.io/devtools-protocol/): JSON documents, each
/// followed by a NUL.
package final class HeadlessBrowser {
  private static let program: String? = {
    let folders = ["/usr/bin", "/usr/local/bin", "/opt/google/chrome"]
    let names = ["chromium", "chromium-browser", "google-chrome", "chrome"]
    return folders.flatMap { folder in names.map { "\(folder)/\($0)" } }
      .first { FileManager.default.isExecutableFile(atPath: $0) }
  }()

  /// True if Chromium is installed.
  package static var isInstalled: Bool { program != nil }
  /// Why tests that need the browser do not run.
  package static let requirement = "Chromium is not installed"

  /// A command that the browser did not carry out.
  package struct Failure: Error, CustomStringConvertible { package let description: String }

  /// The events that the browser has sent.
  package private(set) var events: [(method: String, parameters: [String: Any])] = []

  private let process = Process()
  private let commands: FileHandle
  private let answers: FileHandle
  private var pending = Data()
  private var number = 0
  private var session: String?

  /// Starts the browser and opens a page.
  ///
  /// - Parameters:
  ///   - path: The page.
  ///   - folder: A folder for the browser's files.
  package convenience init(opening path: String, in folder: String) throws {
    try self.init(openingURL: URL(fileURLWithPath: path).absoluteString, in: folder)
  }

  /// Starts the browser and opens a page.
  ///
  /// - Parameters:
  ///   - url: The page's address.
  ///   - folder: A folder for the browser's files.
  package init(openingURL url: String, in folder: String) throws {
    guard let program = Self.program else { throw Failure(description: Self.requirement) }
    let pipes = ["\(folder)/commands", "\(folder)/answers"]
    for pipe in pipes where mkfifo(pipe, 0o600) != 0 { throw Failure(description: "no pipe: \(errno)") }
    process.executableURL = URL(fileURLWithPath: "/bin/sh")
    process.arguments = [
      "-c", #"exec "$0" "$@" 3< "$COMMANDS" 4> "$ANSWERS""#, program, "--headless=new", "--remote-debugging-pipe",
      "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--user-data-dir=\(folder)/profile",
      "about:blank",
    ]
    process.environment = ["COMMANDS": pipes[0], "ANSWERS": pipes[1], "HOME": folder, "PATH": "/usr/bin:/bin"]
    process.standardOutput = FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    try process.run()
    // Each of these calls waits for the other end.
    commands = try FileHandle(forWritingTo: URL(fileURLWithPath: pipes[0]))
    answers = try FileHandle(forReadingFrom: URL(fileURLWithPath: pipes[1]))
    let target = try send("Target.createTarget", ["url": "about:blank"])["targetId"] as? String
    session = try send("Target.attachToTarget", ["targetId": target ?? "", "flatten": true])["sessionId"] as? String
    for domain in ["Page", "Runtime", "Log", "Network"] { try send("\(domain).enable") }
    try send("Page.navigate", ["url": url])
    try wait(for: "document.readyState === 'complete' && document.getElementById('main') !== null")
  }

  deinit {
    process.terminate()
    process.waitUntilExit()
  }

  /// Sends a command and waits for its answer.
  @discardableResult
  package func send(_ method: String, _ parameters: [String: Any] = [:]) throws -> [String: Any] {
    guard process.isRunning else { throw Failure(description: "the browser has ended") }
    number += 1
    var message: [String: Any] = ["id": number, "method": method, "params": parameters]
    if let session { message["sessionId"] = session }
    try commands.write(contentsOf: JSONSerialization.data(withJSONObject: message) + [0])
    while true {
      let answer = try next()
      guard answer["id"] as? Int == number else {
        if let method = answer["method"] as? String {
          events.append((method, answer["params"] as? [String: Any] ?? [:]))
        }
        continue
      }
      if let error = answer["error"] { throw Failure(description: "\(method): \(error)") }
      return answer["result"] as? [String: Any] ?? [:]
    }
  }

  private func next() throws -> [String: Any] {
    while true {
      if let end = pending.firstIndex(of: 0) {
        let message = pending[pending.startIndex..<end]
        pending = Data(pending[pending.index(after: end)...])
        return try JSONSerialization.jsonObject(with: message) as? [String: Any] ?? [:]
      }
      let more = answers.availableData
      guard !more.isEmpty else { throw Failure(description: "the browser has ended") }
      pending.append(more)
    }
  }

  /// The value of an expression in the page.
  package func evaluate(_ expression: String) throws -> Any? {
    let answer = try send(
      "Runtime.evaluate", ["expression": expression, "returnByValue": true, "awaitPromise": true])
    if let details = answer["exceptionDetails"] { throw Failure(description: "\(expression): \(details)") }
    return (answer["result"] as? [String: Any])?["value"]
  }

  /// The value of an expression, as text.
  package func text(_ expression: String) throws -> String { "\(try evaluate("String(\(expression))") ?? "")" }

  /// Waits until an expression is true, for a minute at most: other tests may be using the machine.
  package func wait(for expression: String) throws {
    for _ in 0..<1200 {
      if try evaluate(expression) as? Bool == true { return }
      Thread.sleep(forTimeInterval: 0.05)
    }
    throw Failure(description: "never true: \(expression)")
  }

  /// Presses and releases a key.
  package func press(_ key: String, code: Int, text: String? = nil) throws {
    var parameters: [String: Any] = ["type": "keyDown", "key": key, "windowsVirtualKeyCode": code]
    if let text { parameters["text"] = text }
    try send("Input.dispatchKeyEvent", parameters)
    parameters["type"] = "keyUp"
    parameters["text"] = nil
    try send("Input.dispatchKeyEvent", parameters)
  }

  /// Types a text.
  package func type(_ text: String) throws { try send("Input.insertText", ["text": text]) }

  /// Sets the screen on which the page is shown.
  package func emulate(media: String = "", colorScheme: String) throws {
    try send(
      "Emulation.setEmulatedMedia",
      ["media": media, "features": [["name": "prefers-color-scheme", "value": colorScheme]]])
  }
}
