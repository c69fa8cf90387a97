import BuckiaBytes
import BuckiaStorage

/// A folder of a bucket by an address such as `s3://bucket/folder?endpoint=https://…&region=…`, with the credentials in
/// the environment, as the programs of AWS and Litestream read them.
package struct S3Address {
  /// The bucket.
  package let account: StorageAccount
  /// The folder in it; nil for the bucket itself.
  package let folder: RemotePath?

  /// The beginning of such an address.
  package static let scheme = "s3://"

  /// Reads an address.
  ///
  /// - Parameters:
  ///   - text: The address. Without `endpoint` and `region`, those of the environment count, or else AWS in `us-east-1`.
  ///   - environment: The environment. The variables of Litestream come before those of AWS.
  /// - Throws: `StorageError` with `invalidSetting`.
  package init(_ text: String, environment: [String: String]) throws(StorageError) {
    func setting(_ names: String...) -> String? {
      names.lazy.compactMap { environment[$0] }.first { !$0.isEmpty }
    }
    let address = try HTTPAddress("https://\(text.dropFirst(Self.scheme.count))")
    let query = Dictionary(address.queryItems) { first, _ in first }
    if let other = query.keys.sorted().first(where: { !["endpoint", "region"].contains($0) }) {
      throw StorageError(.invalidSetting, "an s3:// address takes \"endpoint\" and \"region\", not \"\(other)\"")
    }
    guard let key = setting("LITESTREAM_ACCESS_KEY_ID", "AWS_ACCESS_KEY_ID"),
      let secret = setting("LITESTREAM_SECRET_ACCESS_KEY", "AWS_SECRET_ACCESS_KEY")
    else {
      throw StorageError(
        .invalidSetting, "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment to open \(text)")
    }
    let region = query["region"] ?? setting("AWS_REGION", "AWS_DEFAULT_REGION") ?? "us-east-1"
    let endpoint =
      query["endpoint"] ?? setting("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
      ?? "https://s3.\(region).amazonaws.com"
    account = StorageAccount(
      .s3(
        S3Configuration(
          endpoint: endpoint.contains("://") ? endpoint : "https://\(endpoint)", region: region, bucket: address.host),
        S3Credentials(accessKey: key, secret: secret, sessionToken: setting("AWS_SESSION_TOKEN"))))
    let path = address.path.split(separator: "/").map { PercentEncoding.decoded($0) ?? String($0) }.joined(
      separator: "/")
    folder = path.isEmpty ? nil : try RemotePath(path)
  }
}
