/// Which endpoints of an upstream get requests at the moment.
package struct EndpointSelection: Sendable, Equatable {
    /// Of the endpoints that are not drained.
    package enum Pool: Sendable, Equatable {
        /// The usable ones that are no backups.
        case usable
        /// The usable ones, backups included.
        case usableWithBackups
        /// All of them: too few are usable (`panic_threshold`).
        case all
        case none
    }

    /// Endpoints that are not drained and no backups, and how many of these are usable.
    private var primaries = 0
    private var usablePrimaries = 0
    /// The same of backups.
    private var backups = 0
    private var usableBackups = 0

    package init() {}

    /// Counts an endpoint.
    package mutating func count(_ candidate: EndpointCandidate) {
        guard candidate.condition != .drained else { return }
        if candidate.isBackup {
            backups &+= 1
            if candidate.isUsable { usableBackups &+= 1 }
        } else {
            primaries &+= 1
            if candidate.isUsable { usablePrimaries &+= 1 }
        }
    }

    /// - Parameter panicThreshold: the percentage of usable endpoints below which all are used; 0 is never.
    package func pool(panicThreshold: Int) -> Pool {
        let isEnough = usablePrimaries > 0 && usablePrimaries &* 100 >= primaries &* panicThreshold
        if isEnough { return .usable }
        if usableBackups > 0 { return .usableWithBackups }
        // A single endpoint is used whatever is known of it.
        if panicThreshold > 0 || primaries &+ backups == 1 { return primaries &+ backups > 0 ? .all : .none }
        return usablePrimaries > 0 ? .usable : .none
    }
}
