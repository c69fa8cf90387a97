import BuckiaBytes

/// A connection to a port of this computer, byte by byte, for requests that no client would send.
package final class LoopbackConnection {
  /// The failure of a connection.
  package struct Failure: Error, CustomStringConvertible { package let description: String }

  /// An HTTP answer.
  package struct Answer {
    package let status: Int
    /// By name in lower case.
    package let headers: [String: String]
    package let body: [UInt8]

    /// The body as a text.
    package var text: String { String(decoding: body, as: UTF8.self) }
  }

  private let descriptor: Int32
  private var pending: [UInt8] = []

  /// Connects.
  ///
  /// - Parameters:
  ///   - port: The port.
  ///   - host: The last byte of the address: 1 for 127.0.0.1.
  /// - Throws: `Failure` if nothing listens.
  package init(port: Int, host: UInt32 = 1) throws {
    #if canImport(Darwin)
      descriptor = socket(AF_INET, SOCK_STREAM, 0)
    #else
      descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    #endif
    guard descriptor >= 0 else { throw Failure(description: "no socket: \(errno)") }
    // While all other tests run, an answer may take minutes, but not for ever.
    var limit = timeval(tv_sec: 300, tv_usec: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    #if canImport(Darwin)
      var isOn: Int32 = 1
      setsockopt(descriptor, SOL_SOCKET, SO_NOSIGPIPE, &isOn, socklen_t(MemoryLayout<Int32>.size))
    #endif
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = in_port_t(UInt16(port).bigEndian)
    address.sin_addr.s_addr = (UInt32(127) << 24 | host).bigEndian
    let result = withUnsafePointer(to: &address) { pointer in
      // Sound: the system accepts any address by its first fields.
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    guard result == 0 else {
      let number = errno
      close(descriptor)
      throw Failure(description: "nothing listens: \(number)")
    }
  }

  deinit { close(descriptor) }

  /// Sends bytes.
  ///
  /// - Returns: True if they could be sent; the other side may have closed the connection.
  @discardableResult
  package func send(_ text: String) -> Bool {
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { bytes in
        #if canImport(Darwin)
          systemSend(descriptor, bytes.baseAddress, bytes.count, 0)
        #else
          systemSend(descriptor, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
        #endif
      }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { return false }
      rest = rest.dropFirst(count)
    }
    return true
  }

  /// Reads more bytes.
  ///
  /// - Returns: True if there were any, false at the end.
  private func readMore() throws -> Bool {
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    while true {
      let count = recv(descriptor, &buffer, buffer.count, 0)
      if count < 0, errno == EINTR { continue }
      if count < 0, errno == EAGAIN || errno == EWOULDBLOCK { throw Failure(description: "no answer in five minutes") }
      // A reset connection has ended, too.
      guard count > 0 else { return false }
      pending += buffer[..<count]
      return true
    }
  }

  /// All bytes until the other side closes the connection.
  package func rest() throws -> [UInt8] {
    while try readMore() {}
    defer { pending = [] }
    return pending
  }

  /// The next answer.
  ///
  /// - Parameter isHead: True if the answer has no body, whatever its header says.
  /// - Throws: `Failure` if the connection ends before the answer.
  package func answer(isHead: Bool = false) throws -> Answer {
    let end = Array("\r\n\r\n".utf8)
    var place = pending.firstRange(of: end)
    while place == nil {
      guard try readMore() else { throw Failure(description: "the connection was closed") }
      place = pending.firstRange(of: end)
    }
    guard let place else { throw Failure(description: "no answer") }
    let lines = String(decoding: pending[..<place.lowerBound], as: UTF8.self).split(separator: "\r\n")
    var headers: [String: String] = [:]
    for line in lines.dropFirst() {
      let parts = line.split(separator: ":", maxSplits: 1)
      headers[parts[0].lowercased()] = parts.count > 1 ? String(parts[1].drop { $0 == " " }) : ""
    }
    pending.removeSubrange(..<place.upperBound)
    let length = isHead ? 0 : Int(headers["content-length"] ?? "") ?? 0
    while pending.count < length {
      guard try readMore() else { throw Failure(description: "the answer is cut off") }
    }
    let body = Array(pending.prefix(length))
    pending.removeFirst(length)
    let words = lines.first?.split(separator: " ") ?? []
    guard words.count > 1, let status = Int(words[1]) else { throw Failure(description: "no status line") }
    return Answer(status: status, headers: headers, body: body)
  }
}

// Inside the type, a method with the same name hides the system's function.
private func systemSend(_ descriptor: Int32, _ start: UnsafeRawPointer?, _ count: Int, _ flags: Int32) -> Int {
  send(descriptor, start, count, flags)
}
