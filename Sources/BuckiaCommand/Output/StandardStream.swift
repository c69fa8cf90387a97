import Buckia
import BuckiaStorage

/// One of the two streams that a program prints to, written without a buffer.
enum StandardStream: Int32 {
  case output = 1
  case error = 2

  /// A stream that takes no more bytes.
  struct Failure: Error, CustomStringConvertible {
    let stream: StandardStream
    /// The system's error number.
    let number: Int32

    var description: String { "standard \(stream) cannot be written: \(String(cString: strerror(number)))" }
  }

  /// Writes all of the bytes.
  func write(_ bytes: UnsafeRawBufferPointer) throws(Failure) {
    var done = 0
    while done < bytes.count, let start = bytes.baseAddress {
      let count = systemWrite(rawValue, start + done, bytes.count - done)
      if count >= 0 { done += count } else if errno != EINTR { throw Failure(stream: self, number: errno) }
    }
  }

  /// Writes a text, and ignores failures. Only for standard error, because its failures cannot be reported.
  func tell(_ text: String) {
    do { try Array(text.utf8).withUnsafeBytes { try write($0) } } catch { return }
  }
}

// Inside the type the system's function is hidden by a method of its name.
private func systemWrite(_ descriptor: Int32, _ start: UnsafeRawPointer, _ count: Int) -> Int {
  write(descriptor, start, count)
}
