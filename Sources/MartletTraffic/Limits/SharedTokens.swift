/// Where tokens are counted over all processes.
package protocol SharedTokenStoring: Sendable {
    /// Asks for tokens without waiting.
    /// - Parameter completion: called once, on any thread; `nil` if the store did not respond.
    func ask(_ ask: TokenAsk, _ completion: @escaping @Sendable (TokenGrant?) -> Void)
}

/// What a process asks the store for, about one key of a limit.
package struct TokenAsk: Sendable, Equatable {
    /// The limit's name, then the parts of the key: no two keys have the same.
    package var key: [UInt8] = []
    package var rate = TokenRate(count: 1, burst: 1)
    /// Tokens for requests that wait for them.
    package var waiting = 0
    /// Tokens that the process would like to lease for requests to come.
    package var extra = 0
    /// Leased tokens that it has used.
    package var spent = 0
    /// Tokens that it gives back.
    package var returned = 0

    package init() {}

    /// How long leased tokens may be used, in nanoseconds.
    package static var leaseLifetime: Int64 { TokenLease.lifetime }
}

/// What the store grants.
package struct TokenGrant: Sendable, Equatable {
    /// Tokens for requests that wait; fewer than were asked for if there are no more.
    package let granted: Int
    /// Leased tokens.
    package let extra: Int
    /// Nanoseconds until the bucket is full, once all of these are used.
    package let missing: Int64

    package init(granted: Int, extra: Int, missing: Int64) {
        (self.granted, self.extra, self.missing) = (granted, extra, missing)
    }
}

/// A request that waits for tokens of the store.
package protocol TokenWaiting: AnyObject, Sendable {
    /// The decision of one of the limits that it waits for; `nil` if the store did not respond. Never blocks.
    func decided(_ index: Int, _ decision: TokenDecision?)
}

extension TokenRate {
    /// How many tokens all processes together may hold without having used them: a tenth of the burst.
    ///
    /// What passes in any window is what the store has granted in it, and what was held at its beginning: at most the
    /// burst, what comes back, and this.
    package var leasable: Int { burst / 10 }
}
