package import MartletConfig
package import MartletCore
internal import MartletRedis

/// What requests with sessions get while the store that holds them is or is not available.
package enum SessionAvailability: String, Sendable, CaseIterable {
    /// The store responds.
    case ready
    /// Those get their response whose session was read less than `sessions.cache_ttl` ago; the others get 503.
    case cached
    /// All get 503.
    case refused

    /// - Parameters:
    ///   - outage: how long the store has been unavailable; `nil` if it is not.
    ///   - onError: what was configured for that time.
    ///   - cacheTTL: the greatest age of a copy.
    package init(outage: Duration?, onError: StoreConfiguration.OnError, cacheTTL: Duration) {
        guard let outage else {
            self = .ready
            return
        }
        switch onError {
        case .cached: self = outage < cacheTTL ? .cached : .refused
        case .deny: self = .refused
        }
    }

    /// For people.
    var detail: String {
        switch self {
        case .ready: ""
        case .cached: "only sessions that were read less than sessions.cache_ttl ago are accepted; others get 503"
        case .refused: "requests with sessions get 503"
        }
    }
}

extension AdminReport.Store {
    /// How long the store has been unavailable; `nil` if it is not, or if it is in memory.
    package func outage(at now: MonotonicTime) -> Duration? {
        switch self {
        case .memory: nil
        case .redis(let status): status.state == .connected ? nil : now.since(status.since)
        }
    }
}
