import BuckiaStorage

/// The media types of what people keep beside a database, by the ending of its name, for those who look at it in a browser. Of everything else the
/// type is that of any bytes (RFC 2046, section 4.5.1).
enum ContentType {
  private static let types = [
    "jpg": "image/jpeg", "jpeg": "image/jpeg", "png": "image/png", "gif": "image/gif", "webp": "image/webp",
    "heic": "image/heic", "avif": "image/avif", "svg": "image/svg+xml", "mp4": "video/mp4", "m4v": "video/mp4",
    "mov": "video/quicktime", "webm": "video/webm", "mp3": "audio/mpeg", "m4a": "audio/mp4", "wav": "audio/wav",
    "flac": "audio/flac", "ogg": "audio/ogg", "opus": "audio/ogg", "pdf": "application/pdf",
    "txt": "text/plain; charset=utf-8",
    "json": "application/json", "sqlite": "application/vnd.sqlite3",
  ]

  /// The type of an object.
  static func of(_ path: RemotePath) -> String {
    let name = path.name
    guard let dot = name.lastIndex(of: ".") else { return "application/octet-stream" }
    return types[name[name.index(after: dot)...].lowercased()] ?? "application/octet-stream"
  }
}
