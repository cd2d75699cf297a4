internal import MartletResponder

/// A request that a handler in this process responds to.
struct LocalExchange {
    var task: Task<Void, Never>?
    var handler: LocalHandler?
}
