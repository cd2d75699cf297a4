extension SharedBound {
    private static let mebibyte = 1024 * 1024
    /// A quarter for one address, half for its network: what is left is for others, however many come from there.
    private static let quarter = BoundShare.part(ofAddress: 4, ofNetwork: 2)
    /// Values in the store.
    private static let eighth = BoundShare.partAndFree(8)
    private static let ordinary = BoundShare.rate(600, within: .seconds(120))
    private static let selfService = BoundShare.rate(60, within: .seconds(600))

    /// How much there is, and for whom.
    package var terms: BoundTerms {
        switch self {
        case .connections: BoundTerms(nil, .free(times: 7), .closed)
        case .operators: BoundTerms(nil, .free(times: 7), .closed)
        case .upstreamConnections: BoundTerms(nil, .free(times: 3), .unavailable)
        case .upstreamRequests: BoundTerms(nil, .free(times: 3), .unavailable)
        case .upstreamUse: BoundTerms(nil, .free(times: 3), .unavailable)
        case .upstreamQueue: BoundTerms(nil, .free(times: 3), .unavailable)
        case .routeRequests: BoundTerms(nil, .free(times: 3), .unavailable)
        case .streams: BoundTerms(100, .own, .unavailable)

        case .tasks: BoundTerms(nil, .whole, .unavailable)
        case .handshakes: BoundTerms(16_384, Self.quarter, .closed)
        case .verificationThreads: BoundTerms(4096, .part(ofAddress: 2, ofNetwork: 1), .unavailable)
        case .verificationWorkers: BoundTerms(nil, .whole, .unavailable)
        // The stores divide theirs themselves.
        case .verificationSessions: BoundTerms(4096, .part(ofAddress: 1, ofNetwork: 1), .unavailable)
        case .verificationAccounts: BoundTerms(4096, .part(ofAddress: 1, ofNetwork: 1), .unavailable)
        case .verificationProofs: BoundTerms(4096, .part(ofAddress: 2, ofNetwork: 1), .unavailable)
        case .verificationKeys: BoundTerms(256, .part(ofAddress: 4, ofNetwork: 1), .unavailable)
        case .verificationCalls: BoundTerms(1024, .part(ofAddress: 4, ofNetwork: 1), .unavailable)
        case .sessionLookups: BoundTerms(2048, Self.quarter, .unavailable)
        case .keyLookups: BoundTerms(1024, Self.quarter, .unavailable)
        case .passwordAttempts: BoundTerms(2048, Self.quarter, .tooManyRequests)
        case .passwordHashes: BoundTerms(256, Self.quarter, .tooManyRequests)
        case .providerCalls: BoundTerms(nil, Self.quarter, .unavailable)
        case .pluginWork: BoundTerms(nil, Self.quarter, .unavailable)
        case .weChatExchanges: BoundTerms(128, Self.quarter, .unavailable)
        case .accountCalls: BoundTerms(1024, Self.quarter, .unavailable)
        case .accountCancellations: BoundTerms(64, .whole, .dropped)
        case .undivided: BoundTerms(nil, .whole, .unavailable)
        case .mails: BoundTerms(64, .whole, .unavailable)

        case .keyRequests: BoundTerms(64, Self.quarter, .unavailable)
        case .providerRequests: BoundTerms(256, Self.quarter, .unavailable)
        case .webhookRequests: BoundTerms(64, .whole, .unavailable)
        case .auditRequests: BoundTerms(4, .whole, .unavailable)
        // One at a time for each client of a limit.
        case .limitRequests: BoundTerms(1024, .own, .skipped)
        case .mirrors: BoundTerms(64, .own, .dropped)

        case .generalValues: BoundTerms(20_000, bytes: 16 * Self.mebibyte, Self.eighth, .tooManyRequests)
        case .storedKeys: BoundTerms(1000, bytes: 16 * Self.mebibyte, Self.eighth, .unavailable)
        case .throttles: BoundTerms(100_000, bytes: 32 * Self.mebibyte, Self.eighth, .tooManyRequests)
        case .bans: BoundTerms(20_000, bytes: 8 * Self.mebibyte, Self.eighth, .tooManyRequests)
        case .loginLocations: BoundTerms(100_000, bytes: 32 * Self.mebibyte, Self.eighth, .tooManyRequests)
        case .usedNonces: BoundTerms(50_000, bytes: 16 * Self.mebibyte, Self.eighth, .tooManyRequests)
        case .usedCodes: BoundTerms(100_000, bytes: 32 * Self.mebibyte, Self.eighth, .tooManyRequests)
        case .usedProofs: BoundTerms(100_000, bytes: 32 * Self.mebibyte, Self.eighth, .tooManyRequests)
        case .usedSignatures: BoundTerms(100_000, bytes: 32 * Self.mebibyte, Self.eighth, .tooManyRequests)
        case .usedSignIns: BoundTerms(50_000, bytes: 32 * Self.mebibyte, Self.eighth, .tooManyRequests)
        case .outcomes: BoundTerms(10_000, bytes: 16 * Self.mebibyte, Self.eighth, .tooManyRequests)
        case .changes: BoundTerms(10_000, bytes: 4 * Self.mebibyte, Self.eighth, .unavailable)
        case .sessions: BoundTerms(100_000, bytes: 256 * Self.mebibyte, .own, .unavailable)
        case .storedLinks: BoundTerms(100_000, .own, .dropped)

        case .ownBodies: BoundTerms(16_384, bytes: 64 * Self.mebibyte, Self.eighth, .unavailable)
        case .limitEntries: BoundTerms(100_000, .own, .skipped)

        // More than other failures: a page or an app with a bug may be many people's. Each costs little.
        case .unreadableRequests: BoundTerms(nil, .rate(1200, within: .seconds(120)), .tooManyRequests)
        // Each costs a hash and may cause a mail, whatever its outcome.
        case .registrations: BoundTerms(nil, Self.selfService, .tooManyRequests)
        case .mailRequests: BoundTerms(nil, Self.selfService, .tooManyRequests)
        case .mailsToAddress: BoundTerms(nil, .rate(3, within: .seconds(3600)), .dropped)
        case .linkUses: BoundTerms(nil, Self.selfService, .tooManyRequests)
        // Each change of a profile is sent to every instance.
        case .profileChanges: BoundTerms(nil, .rate(300, within: .seconds(600)), .tooManyRequests)
        // A nonce needs no store, and a proof is marked in one whatever follows; a login needs about one of them.
        case .newNonces: BoundTerms(nil, .rate(2000, within: .seconds(120)), .tooManyRequests)
        case .loginProofs: BoundTerms(nil, .rate(2000, within: .seconds(120)), .tooManyRequests)
        case .refreshes: BoundTerms(nil, Self.ordinary, .tooManyRequests)
        case .codeExchanges: BoundTerms(nil, Self.ordinary, .tooManyRequests)
        // Only unknown tokens count.
        case .revocations: BoundTerms(nil, Self.ordinary, .tooManyRequests)
        // Only what cannot be verified counts.
        case .notifications: BoundTerms(nil, Self.ordinary, .tooManyRequests)
        // A provider may have a limit of its own.
        case .logins: BoundTerms(nil, Self.ordinary, .tooManyRequests)

        case .logLines: BoundTerms(nil, bytes: 4 * Self.mebibyte, .reserve(oneIn: 4), .dropped)
        case .auditEvents: BoundTerms(10_000, bytes: 8 * Self.mebibyte, .whole, .dropped)
        case .spans: BoundTerms(16_384, bytes: 16 * Self.mebibyte, .whole, .dropped)
        case .eventReaders: BoundTerms(100, .whole, .unavailable)
        }
    }
}
