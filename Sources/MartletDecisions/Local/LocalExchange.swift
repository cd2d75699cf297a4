package import MartletResponder

/// A request that a handler in this process responds to, or its route itself.
package struct LocalExchange {
    package var task: Task<Void, Never>?
    package var handler: LocalHandler?
    /// The client's head, for the handler.
    package var head: [UInt8] = []
    /// The echo responds in place of an upstream, and shows the head that was written for it.
    package var isEcho = false
    /// The response of its route, where that waits for the request's body.
    package var prepared: PreparedResponse?

    package init() {}
}
