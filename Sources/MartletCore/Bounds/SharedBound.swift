/// A bound that clients share: whatever can be used up without a credential, or by whoever has one.
///
/// Queues, partitions, budgets and totals are made from a case of this list, so that one which is not in it does not
/// compile, and ``terms`` says of each how much there is, what part of it one client may have, and what that one gets for
/// more, and no other client.
@frozen package enum SharedBound: String, Sendable, CaseIterable {
    // MARK: Connections and descriptors

    /// Connections of clients.
    case connections
    /// Connections to the admin listener.
    case operators
    /// Connections to upstreams, and the pipes of their bodies.
    case upstreamConnections = "upstream_connections"
    /// Requests that an upstream with `breaker` has under way.
    case upstreamRequests = "upstream_requests"
    /// What the connections of an upstream with `breaker` carry.
    case upstreamUse = "upstream_use"
    /// Requests that wait for a connection to an upstream with `breaker`.
    case upstreamQueue = "upstream_queue"
    /// Requests of a route with `concurrency` that are under way.
    case routeRequests = "route_requests"
    /// Requests of one client's connection that are under way.
    case streams

    // MARK: Threads and queues

    /// Tasks that wait for a thread.
    case tasks
    /// TLS handshakes that wait for a thread.
    case handshakes
    /// Verifications that wait for a thread, of each provider.
    case verificationThreads = "verification.threads"
    /// The threads themselves; what waits for them is bounded by the others.
    case verificationWorkers = "verification.workers"
    /// Verifications that wait for the session store.
    case verificationSessions = "verification.sessions"
    /// Verifications that wait for the account store.
    case verificationAccounts = "verification.accounts"
    /// Verifications of proofs of possession.
    case verificationProofs = "verification.proofs"
    /// Verifications that wait for a key that the issuer was asked for.
    case verificationKeys = "verification.keys"
    /// Verifications by a provider that makes a request for each.
    case verificationCalls = "verification.calls"
    /// Lookups of sessions.
    case sessionLookups = "sessions.lookups"
    /// Lookups of API keys.
    case keyLookups = "api_keys.lookups"
    /// Attempts with a password.
    case passwordAttempts = "passwords.attempts"
    /// Hashes of passwords that wait for a thread.
    case passwordHashes = "passwords.hashes"
    /// Calls of a provider that wait for a thread of its own.
    case providerCalls = "provider.calls"
    /// What waits in a queue that a plugin makes.
    case pluginWork = "plugin.work"
    /// Exchanges of codes for one WeChat application.
    case weChatExchanges = "wechat.exchanges"
    /// Reads and changes that wait for the account store.
    case accountCalls = "accounts.calls"
    /// Statements of PostgreSQL that are to be canceled.
    case accountCancellations = "accounts.cancellations"
    /// What one user has alone: the work of a command, the values of a test.
    case undivided
    /// Mails that wait for the mail server.
    case mails

    // MARK: Requests to other services

    /// Requests for the keys of issuers.
    case keyRequests = "requests.keys"
    /// Requests of one provider.
    case providerRequests = "requests.provider"
    /// Deliveries to one webhook.
    case webhookRequests = "requests.webhook"
    /// Deliveries of the audit log.
    case auditRequests = "requests.audit"
    /// Questions to the store for shared limits.
    case limitRequests = "requests.limits"
    /// Copies of requests to one shadow.
    case mirrors

    // MARK: The store

    /// Values of providers without a partition of their own.
    case generalValues = "store.general"
    /// Issuer keys, and the leases for fetching them.
    case storedKeys = "store.keys"
    /// Counters of attempts.
    case throttles = "store.throttles"
    /// Users who are locked out for a time.
    case bans = "store.bans"
    /// Locations from which users have logged in.
    case loginLocations = "store.login_locations"
    /// Used nonces.
    case usedNonces = "store.nonces"
    /// Used codes and client data.
    case usedCodes = "store.codes"
    /// Used proofs of possession.
    case usedProofs = "store.proofs"
    /// Used nonces of signed requests.
    case usedSignatures = "store.signatures"
    /// Used sign-ins of browsers, and the codes of apps.
    case usedSignIns = "store.browsers"
    /// Results of posts, for repeated ones.
    case outcomes = "store.outcomes"
    /// Changes that concern logins in progress.
    case changes = "store.changes"
    /// Sessions of the store in memory.
    case sessions
    /// Links of mails that were not used yet.
    case storedLinks = "accounts.links"

    // MARK: Memory

    /// Bodies of requests that the gateway's own endpoints respond to.
    case ownBodies = "bodies"
    /// Clients of one limit.
    case limitEntries = "limits.entries"

    // MARK: Attempts

    /// Requests that the gateway's own endpoints cannot read.
    case unreadableRequests = "attempts.unreadable"
    /// Registrations.
    case registrations = "attempts.registrations"
    /// Requests for a mail.
    case mailRequests = "attempts.mails"
    /// Mails to one address.
    case mailsToAddress = "attempts.mails_to_address"
    /// Uses of links.
    case linkUses = "attempts.links"
    /// Changes of profiles.
    case profileChanges = "attempts.profiles"
    /// New nonces.
    case newNonces = "attempts.nonces"
    /// Proofs of keys at logins and refreshes.
    case loginProofs = "attempts.proofs"
    /// Refreshes.
    case refreshes = "attempts.refreshes"
    /// Exchanges of codes of the gateway's own.
    case codeExchanges = "attempts.codes"
    /// Revocations of tokens.
    case revocations = "attempts.revocations"
    /// Notifications of issuers.
    case notifications = "attempts.notifications"
    /// Logins with one provider.
    case logins = "attempts.logins"

    // MARK: Logs

    /// Lines that wait to be written.
    case logLines = "log.lines"
    /// Events that wait for the audit log.
    case auditEvents = "log.audit"
    /// Spans that wait for the collector of traces.
    case spans = "log.spans"
    /// Readers of the stream of requests.
    case eventReaders = "log.readers"
}

/// How a bound is divided.
@frozen package enum BoundShare: Sendable, Hashable {
    /// One address may have one in so many, and its network (a /24 or /48) another part.
    case part(ofAddress: Int, ofNetwork: Int)
    /// An owner may have one in so many, and its network as much as is free.
    case partAndFree(Int)
    /// A network may have so many times what is free.
    case free(times: Int)
    /// So many in this time, from one address; four times as many from its neighbors together.
    case rate(Int, within: Duration)
    /// Each key, connection or subject has one of its own.
    case own
    /// The first part is for what clients cause; the rest is for what the gateway has to say.
    case reserve(oneIn: Int)
    /// No client can multiply what is counted: other bounds of this list are before it, or only operators come here.
    case whole
}

/// What one gets who has used up a share.
@frozen package enum BoundExcess: Sendable, Hashable {
    /// 429, with the time after which there is more.
    case tooManyRequests
    /// 503.
    case unavailable
    /// The connection is closed, after a 503 where the client can read one.
    case closed
    /// What is beyond it is dropped and counted, and the request goes on.
    case dropped
    /// The request is decided without it.
    case skipped
}

/// How much of something there is, and for whom.
@frozen package struct BoundTerms: Sendable, Hashable {
    /// How many; `nil` where the configuration or the system says so.
    package let total: Int?
    /// How many bytes, where they are counted as well.
    package let bytes: Int?
    package let share: BoundShare
    package let excess: BoundExcess

    init(_ total: Int?, bytes: Int? = nil, _ share: BoundShare, _ excess: BoundExcess) {
        (self.total, self.bytes, self.share, self.excess) = (total, bytes, share, excess)
    }
}

extension SharedBound {
    /// How many there are; unlimited where the configuration or the system says so.
    package var total: Int { terms.total ?? .max }
    /// How many bytes there are; unlimited where none are counted.
    package var bytes: Int { terms.bytes ?? .max }

    /// How many one address may have within a time, where it is divided like that.
    package var rate: (count: Int, window: Duration)? {
        guard case .rate(let count, let window) = terms.share else { return nil }
        return (count, window)
    }

    /// How many one address may have.
    package func addressPart(of total: Int) -> Int {
        switch terms.share {
        case .part(let address, _): max(total / address, 1)
        case .partAndFree(let part): max(total / part, 1)
        case .free, .rate, .own, .reserve, .whole: total
        }
    }

    /// How much clients may cause together; the rest is for the gateway itself.
    package func clientPart(of total: Int) -> Int {
        guard case .reserve(let part) = terms.share else { return total }
        return total - total / max(part, 1)
    }

    /// How many the network of an address may have, its own neighbors included.
    package func networkPart(of total: Int) -> Int {
        guard case .part(_, let network) = terms.share else { return total }
        return max(total / network, 1)
    }
}
