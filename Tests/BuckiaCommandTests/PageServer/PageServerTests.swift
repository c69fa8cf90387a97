@testable import BuckiaCommand
import Dispatch
import TestSupport
import Testing

@Suite("A server of pages for this computer")
struct PageServerTests {
  @Test("The address serves the page, with all headers that keep it from other sites")
  func page() throws {
    let pages = try ServedPages()
    let answer = try pages.ask("GET \(pages.path("a/b?c=%C3%A9"))", pages.host)
    #expect(answer.status == 200)
    #expect(answer.text == "get [\"a\", \"b\"] [\"c=é\"]\n")
    #expect(answer.headers["cache-control"] == "no-store")
    #expect(answer.headers["referrer-policy"] == "no-referrer")
    #expect(answer.headers["x-content-type-options"] == "nosniff")
    #expect(answer.headers["x-frame-options"] == "DENY")
    #expect(answer.headers["cross-origin-opener-policy"] == "same-origin")
    #expect(answer.headers["cross-origin-resource-policy"] == "same-origin")
    let policy = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    #expect(answer.headers["content-security-policy"] == policy)
    #expect(answer.headers.keys.contains { $0.hasPrefix("access-control") } == false)
  }

  @Test("The address is on this computer, with a new token each time")
  func address() throws {
    let pages = try ServedPages()
    #expect(pages.server.address == "http://127.0.0.1:\(pages.server.port)/\(pages.token.text)/")
    #expect(pages.token.text.utf8.count == 40)
    #expect(Set((0..<100).map { _ in PageToken().text }).count == 100)
    #expect(throws: LoopbackConnection.Failure.self) { try LoopbackConnection(port: pages.server.port, host: 2) }
  }

  @Test("A port in use is reported")
  func takenPort() throws {
    let pages = try ServedPages()
    let error = #expect(throws: PageServerError.self) {
      try PageServer(port: pages.server.port, token: PageToken()) { _ in .text(.ok, "") }
    }
    #expect(error?.description.contains("the port \(pages.server.port) of this computer could not be opened") == true)
  }

  @Test("Without the token, any request gets the same answer, which reveals nothing")
  func token() throws {
    let pages = try ServedPages()
    let token = pages.token.text
    let other = PageToken().text
    let short = String(token.dropLast())
    let paths = [
      "/", "/\(other)/", "/\(short)/", "/\(token)0/", "/a/\(token)/", "//\(token)/", "/favicon.ico", "*",
      "/\(token)/../x/%2e", "http://127.0.0.1/\(token)/", "/\(token)/a//b", "/\(token.uppercased())X/",
    ]
    var answers: Set<String> = []
    for path in paths {
      for method in ["GET", "POST", "DELETE"] {
        let answer = try pages.ask("\(method) \(path)", pages.host)
        #expect(answer.status == 404, "\(method) \(path)")
        answers.insert(answer.text)
      }
    }
    #expect(answers == ["Not found.\n"])
    #expect(try pages.ask("GET /\(token)", pages.host).status == 200)
  }

  @Test("Requests with another host name are refused")
  func host() throws {
    let pages = try ServedPages()
    let port = pages.server.port
    let path = pages.path()
    for host in ["127.0.0.1:\(port)", "localhost:\(port)"] {
      #expect(try pages.ask("GET \(path)", "Host: \(host)\r\n").status == 200, "\(host)")
    }
    let others = [
      "example.org:\(port)", "127.0.0.1", "127.0.0.1:\(port &+ 1)", "localhost.:\(port)", "[::1]:\(port)", "",
      "127.0.0.1:\(port).example.org",
    ]
    for host in others { #expect(try pages.ask("GET \(path)", "Host: \(host)\r\n").status == 421, "\(host)") }
    let twice = "Host: 127.0.0.1:\(port)\r\nHost: example.org\r\n"
    #expect([400, 421].contains(try pages.ask("GET \(path)", twice).status))
    #expect(try pages.ask("GET \(path)", "").status == 421)
  }

  private static let type = "Content-Type: application/x-www-form-urlencoded\r\n"

  @Test("Only forms of the server's own pages can change anything")
  func origins() throws {
    let pages = try ServedPages()
    let own = "Origin: http://127.0.0.1:\(pages.server.port)\r\n"
    let heard = ["\(own)", "\(own)Sec-Fetch-Site: same-origin\r\n", "Origin: null\r\nSec-Fetch-Site: same-origin\r\n"]
    for headers in heard {
      let answer = try pages.ask("POST \(pages.path())", pages.host + Self.type + headers, body: "a=b+c")
      #expect(answer.status == 200, "\(headers)")
      #expect(answer.text == "post [] [\"a=b c\"]\n")
    }
    let refused = [
      "", "Origin: null\r\n", "Origin: http://example.org\r\n", "Sec-Fetch-Site: same-origin\r\n",
      "\(own)Sec-Fetch-Site: cross-site\r\n", "Origin: null\r\nSec-Fetch-Site: cross-site\r\n",
      "Origin: null\r\nSec-Fetch-Site: none\r\n", "Origin: https://127.0.0.1:\(pages.server.port)\r\n",
      "Origin: http://localhost:\(pages.server.port)\r\n", "\(own)\(own)",
      "Origin: null\r\nSec-Fetch-Site: same-origin\r\nSec-Fetch-Site: same-origin\r\n",
    ]
    for headers in refused {
      let answer = try pages.ask("POST \(pages.path())", pages.host + Self.type + headers, body: "a=b")
      #expect(answer.status == 403, "\(headers)")
    }
  }

  @Test("Another site can link to a page, but load nothing")
  func otherSites() throws {
    let pages = try ServedPages()
    let path = pages.path()
    func status(_ headers: String) throws -> Int { try pages.ask("GET \(path)", pages.host + headers).status }
    for site in ["none", "same-origin"] { #expect(try status("Sec-Fetch-Site: \(site)\r\n") == 200) }
    let link = "Sec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n"
    #expect(try status("Sec-Fetch-Site: cross-site\r\n\(link)") == 200)
    for destination in ["iframe", "image", "script", "empty"] {
      let headers = "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\nSec-Fetch-Dest: \(destination)\r\n"
      #expect(try status(headers) == 403, "\(destination)")
    }
    #expect(try status("Sec-Fetch-Site: same-site\r\n") == 403)
    #expect(try status("Origin: http://example.org\r\n") == 403)
  }

  @Test("Reading is GET or HEAD, and changing is POST with a form")
  func methods() throws {
    let pages = try ServedPages()
    let head = try pages.ask("HEAD \(pages.path())", pages.host)
    #expect(head.status == 200 && head.body.isEmpty && head.headers["content-length"] == "10")
    for method in ["PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"] {
      let answer = try pages.ask("\(method) \(pages.path())", pages.host)
      #expect(answer.status == 405, "\(method)")
      #expect(answer.headers["allow"] == "GET, HEAD, POST", "\(method)")
    }
    let own = pages.host + "Origin: http://127.0.0.1:\(pages.server.port)\r\n"
    for type in ["", "Content-Type: text/plain\r\n", "Content-Type: multipart/form-data; boundary=x\r\n"] {
      #expect(try pages.ask("POST \(pages.path())", own + type, body: "a=b").status == 415, "\(type)")
    }
    #expect(try pages.ask("POST \(pages.path())", pages.formHeaders, body: "a=%").status == 400)
    #expect(try pages.ask("GET \(pages.path("?a=%"))", pages.host).status == 400)
  }

  @Test("A request that is too large is refused before it is kept")
  func sizes() throws {
    var limits = ServerLimits()
    (limits.headBytes, limits.bodyBytes) = (4096, 10_000)
    let pages = try ServedPages(limits: limits)
    func form(_ count: Int) -> String { "a=" + String(repeating: "x", count: count - 2) }
    #expect(try pages.ask("POST \(pages.path())", pages.formHeaders, body: form(10_000)).status == 200)
    #expect(try pages.ask("POST \(pages.path())", pages.formHeaders, body: form(10_001)).status == 413)
    #expect(try pages.ask("POST \(pages.path())", pages.formHeaders + "Content-Length: \(Int.max)\r\n").status == 413)
    // Chunks do not announce the total size.
    let pieces = try pages.connect()
    pieces.send("POST \(pages.path()) HTTP/1.1\r\n\(pages.formHeaders)Transfer-Encoding: chunked\r\n\r\n")
    for _ in 0..<40 where pieces.send("400\r\n\(form(1024))\r\n") {}
    #expect(try pieces.answer().status == 413)
    // Nor does a header.
    let filler = String(repeating: "x", count: 5_000)
    #expect(try pages.ask("GET \(pages.path())", pages.host + "X: \(filler)\r\n").status == 431)
    #expect(try pages.ask("GET \(pages.path("?a=\(filler)"))", pages.host).status == 431)
    let endless = try pages.connect()
    endless.send("GET \(pages.path()) HTTP/1.1\r\nX: ")
    for _ in 0..<1000 where endless.send(filler) {}
    let rest = String(decoding: try endless.rest(), as: UTF8.self)
    #expect(rest.isEmpty || rest.hasPrefix("HTTP/1.1 431 "))
    #expect(try pages.ask("GET \(pages.path())", pages.host).status == 200)
  }

  @Test(
    "Input that is not HTTP is refused",
    arguments: ["hello\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "\u{16}\u{3}\u{1}\r\n\r\n"])
  func notHTTP(text: String) throws {
    let pages = try ServedPages()
    let connection = try pages.connect()
    connection.send(text)
    let rest = String(decoding: try connection.rest(), as: UTF8.self)
    #expect(rest.hasPrefix("HTTP/1.1 4"), "\(rest)")
  }

  @Test("A slow client does not hold up others: it sends nothing, half a request, or a byte now and then")
  func slowClients() throws {
    var limits = ServerLimits()
    limits.milliseconds = 3_000
    let pages = try ServedPages(limits: limits)
    let silent = try pages.connect()
    let half = try pages.connect()
    half.send("POST \(pages.path()) HTTP/1.1\r\n\(pages.formHeaders)Content-Length: 5\r\n\r\na=")
    let kept = try pages.connect()
    kept.send("GET \(pages.path()) HTTP/1.1\r\n\(pages.host)\r\n")
    #expect(try kept.answer().status == 200)
    let trickle = try pages.connect()
    // The loop ends because the server closes the connection.
    let pause = DispatchSemaphore(value: 0)
    while trickle.send("G") { _ = pause.wait(timeout: .now() + .milliseconds(20)) }
    #expect(try silent.rest().isEmpty)
    #expect(try half.rest().isEmpty)
    #expect(try kept.rest().isEmpty)
  }

  /// Requests the first page until the connection is admitted: the server notices the end of an earlier one with a
  /// delay.
  ///
  /// - Returns: The status; nil if the connection was never admitted.
  private func statusOnceAdmitted(_ pages: ServedPages) throws -> Int? {
    let pause = DispatchSemaphore(value: 0)
    for _ in 0..<2_000 {
      do {
        return try pages.ask("GET \(pages.path())", pages.host).status
      } catch is LoopbackConnection.Failure { _ = pause.wait(timeout: .now() + .milliseconds(10)) }
    }
    return nil
  }

  @Test("The number of connections is limited; when one ends, another is admitted")
  func connections() throws {
    var limits = ServerLimits()
    limits.connections = 4
    limits.milliseconds = 3_600_000
    let pages = try ServedPages(limits: limits)
    var open = try (0..<4).map { _ in try pages.connect() }
    for connection in open {
      connection.send("GET \(pages.path()) HTTP/1.1\r\n\(pages.host)\r\n")
      #expect(try connection.answer().status == 200)
    }
    #expect(try pages.connect().rest().isEmpty)
    open.removeLast()
    #expect(try statusOnceAdmitted(pages) == 200)
    for connection in open {
      connection.send("GET \(pages.path()) HTTP/1.1\r\n\(pages.host)\r\n")
      #expect(try connection.answer().status == 200)
    }
  }

  @Test func `idle connections and those without the token give way to a browser, whose connections stay`() throws {
    var limits = ServerLimits()
    limits.connections = 4
    // No connection ends by itself. The three idle ones are admitted in any order.
    limits.milliseconds = 3_600_000
    let pages = try ServedPages(limits: limits)
    let browser = try pages.connect()
    func isServed() throws -> Bool {
      browser.send("GET \(pages.path()) HTTP/1.1\r\n\(pages.host)\r\n")
      return try browser.answer().status == 200
    }
    #expect(try isServed())
    let idle = try (0..<3).map { _ in try pages.connect() }
    let stranger = try pages.connect()
    stranger.send("GET /\(PageToken().text)/ HTTP/1.1\r\n\(pages.host)")
    for _ in 0..<20 {
      #expect(try statusOnceAdmitted(pages) == 200)
      #expect(try isServed())
    }
    withExtendedLifetime((idle, stranger)) {}
  }

  @Test("A connection serves one request after another, each once the one before is answered")
  func order() throws {
    let pages = try ServedPages()
    let connection = try pages.connect()
    for number in 1...20 {
      connection.send("GET \(pages.path("\(number)")) HTTP/1.1\r\n\(pages.host)\r\n")
      #expect(try connection.answer().text == "get [\"\(number)\"] []\n")
    }
    let eager = try pages.connect()
    eager.send(String(repeating: "GET \(pages.path()) HTTP/1.1\r\n\(pages.host)\r\n", count: 3))
    #expect(try eager.answer().status == 200)
    #expect(try eager.rest().isEmpty)
    let last = try pages.connect()
    last.send("GET \(pages.path()) HTTP/1.1\r\n\(pages.host)Connection: close\r\n\r\n")
    #expect(try last.answer().headers["connection"] == "close")
    #expect(try last.rest().isEmpty)
  }

  @Test("Pages can be read during a change, and changes wait for each other")
  func slowAnswers() throws {
    let isLetGo = DispatchSemaphore(value: 0)
    let pages = try ServedPages { request in
      if request.method == .post { isLetGo.wait() }
      return .text(.ok, "\(request.method)")
    }
    let changing = try (0..<2).map { _ in try pages.connect() }
    for connection in changing {
      connection.send("POST \(pages.path()) HTTP/1.1\r\n\(pages.formHeaders)Content-Length: 0\r\n\r\n")
    }
    #expect(try pages.ask("GET \(pages.path())", pages.host).text == "get\n")
    for _ in changing { isLetGo.signal() }
    for connection in changing { #expect(try connection.answer().text == "post\n") }
  }

  @Test("A large page arrives complete")
  func largePage() throws {
    let body = [UInt8](repeating: UInt8(ascii: "x"), count: 20 << 20)
    let pages = try ServedPages { _ in PageResponse(.ok, body: body) }
    let answer = try pages.ask("GET \(pages.path())", pages.host)
    #expect(answer.body == body)
  }
}
