import BuckiaStorage

/// Which bucket, and how it is reached.
public struct S3Configuration: Sendable, Equatable {
  /// Where the bucket's name goes.
  public enum Style: String, Sendable, Codable {
    /// Into the path: `https://host/bucket/object`. Every server understands it.
    case path
    /// Before the host: `https://bucket.host/object`. AWS wants it of new buckets.
    case virtualHost = "virtual-host"
  }

  /// The address of the service, such as `https://s3.eu-central-1.amazonaws.com` or `http://127.0.0.1:9000`.
  public var endpoint: String
  /// The region that signatures name; `auto` for R2, `us-east-1` where a server has none.
  public var region: String
  /// The bucket.
  public var bucket: String
  /// Where its name goes.
  public var style: Style
  /// From how many bytes on an object is sent in parts.
  public var multipartThreshold: Int64 = 16 << 20
  /// How many bytes a part has; more where an object would have over 10,000 parts.
  public var partBytes: Int64 = 8 << 20
  /// How many requests may be under way at once: R2 allows two or three for one object.
  public var transferLimit = 4
  /// Whether the server honours `If-None-Match` and `If-Match` when an object is put. ``StorageProbe`` finds out.
  public var honoursConditions = true

  /// Describes a bucket.
  public init(endpoint: String, region: String, bucket: String, style: Style = .path) {
    self.endpoint = endpoint
    self.region = region
    self.bucket = bucket
    self.style = style
  }

  /// The least and the most that S3 lets a part have, in bytes:
  /// <https://docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html>.
  static let partRange: ClosedRange<Int64> = (5 << 20)...(5 << 30)
  /// How many parts an object may have.
  static let partLimit: Int64 = 10_000

  /// The address of the bucket.
  ///
  /// - Throws: `StorageError` with `invalidSetting`.
  func address() throws(StorageError) -> HTTPAddress {
    var address = try HTTPAddress(endpoint)
    let isName = bucket.utf8.allSatisfy {
      ($0 >= 0x30 && $0 <= 0x39) || ($0 | 0x20 >= 0x61 && $0 | 0x20 <= 0x7A) || [0x2D, 0x2E, 0x5F].contains($0)
    }
    guard !bucket.isEmpty, isName else {
      throw StorageError(.invalidSetting, "\"\(bucket)\" is no name of a bucket: letters, digits, dots and hyphens")
    }
    guard Self.partRange.contains(partBytes) else {
      throw StorageError(.invalidSetting, "a part has from 5 MiB to 5 GiB, not \(partBytes) bytes")
    }
    switch style {
    case .path: return address.appending([bucket])
    case .virtualHost:
      address.host = "\(bucket).\(address.host)"
      return address
    }
  }

  /// How many bytes each part of an object has, but for the last.
  func partBytes(for byteCount: Int64) -> Int64 {
    let least = (byteCount + Self.partLimit - 1) / Self.partLimit
    // Whole mebibytes, so that an upload that is taken up again has the same parts.
    let mebibytes = (least + (1 << 20) - 1) >> 20
    return max(partBytes, mebibytes << 20)
  }
}
