internal import MartletResponder

/// A request that a handler in this process responds to, or its route itself.
struct LocalExchange {
    var task: Task<Void, Never>?
    var handler: LocalHandler?
    /// The response of its route, where that waits for the request's body.
    var prepared: PreparedResponse?
}
