internal import MartletResponder

/// A request that a handler in this process responds to, or its route itself.
struct LocalExchange {
    var task: Task<Void, Never>?
    var handler: LocalHandler?
    /// The client's head; empty for the echo, which shows the one that was written for the upstream.
    var head: [UInt8] = []
    /// The response of its route, where that waits for the request's body.
    var prepared: PreparedResponse?
}
