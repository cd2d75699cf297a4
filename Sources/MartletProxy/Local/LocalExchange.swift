internal import MartletResponder

/// A request that a handler in this process responds to, or its route itself.
struct LocalExchange {
    var task: Task<Void, Never>?
    var handler: LocalHandler?
    /// The client's head, for the handler.
    var head: [UInt8] = []
    /// The echo responds in place of an upstream, and shows the head that was written for it.
    var isEcho = false
    /// The response of its route, where that waits for the request's body.
    var prepared: PreparedResponse?
}
