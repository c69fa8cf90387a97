import Dispatch

/// Works out the answers, away from the threads that serve the connections: what changes something one by one, and what
/// does not, too, beside it.
struct PageWorker: Sendable {
  private let reading = DispatchQueue(label: "buckia.serve.reading")
  private let writing = DispatchQueue(label: "buckia.serve.writing")
  private let respond: @Sendable (PageRequest) -> PageResponse

  init(_ respond: @escaping @Sendable (PageRequest) -> PageResponse) { self.respond = respond }

  /// Works out an answer, and hands it over on a thread of its own.
  func answer(_ request: PageRequest, _ finish: @escaping @Sendable (PageResponse) -> Void) {
    let queue = request.method == .post ? writing : reading
    queue.async { [respond] in finish(respond(request)) }
  }
}
