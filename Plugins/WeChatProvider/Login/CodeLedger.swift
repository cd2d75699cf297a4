internal import MartletCore
internal import MartletCrypto
internal import MartletProvider

/// Ensures that a code is sent to WeChat at most once over all instances, and that an identical request from the same
/// client gets the same result.
///
/// The store holds two entries per code, both under a digest of it: a claim, for longer than any code is valid, and for
/// a few seconds the outcome, sealed with a key that is derived from the code.
struct CodeLedger: Sendable {
    /// Longer than any code is valid.
    static let claimLifetime = Duration.seconds(900)
    /// How long an identical request gets the same result.
    static let outcomeLifetime = Duration.seconds(10)
    /// How often a second request polls for the outcome of the first.
    static let pollInterval = Duration.milliseconds(50)

    private static let pending: [UInt8] = [0]
    private static let completed: [UInt8] = [1]

    private let claims: any SharedStoring
    private let outcomes: any SharedStoring
    private let clock: Clock
    private let logger: Logger
    private let claimKey: String
    private let outcomeKey: String
    private let tag: [UInt8]
    private let isRepeatable: Bool
    private let seal: OutcomeSeal
    private let sleep: @Sendable (Duration) async -> Void

    init(_ request: LoginRequest, context: ProviderContext, sleep: @escaping @Sendable (Duration) async -> Void) {
        let digest = request.digest
        claims = context.store.partition(.codes, for: request.owner)
        outcomes = context.store.partition(.outcomes, for: request.owner)
        clock = context.clock
        logger = context.logger
        claimKey = context.storeKey(sharedBy: WeChatProvider.kind, "code:\(digest)")
        outcomeKey = context.storeKey("outcome:\(digest)")
        tag = request.tag
        isRepeatable = request.isRepeatable
        seal = OutcomeSeal(proof: request.code, purpose: "martlet wechat outcome", binding: claimKey)
        self.sleep = sleep
    }

    /// Whether a request has claimed the code already.
    /// - Throws: `unavailable` when the store is.
    func isClaimed() async throws(AuthenticationError) -> Bool {
        try await AuthenticationError.value(for: claimKey, in: claims) != nil
    }

    /// Claims the code; to be called when it can be sent immediately.
    /// - Returns: `false` when another request was first.
    /// - Throws: `unavailable` when the store is.
    func claim() async throws(AuthenticationError) -> Bool {
        try await AuthenticationError.fromStore(
            await claims.setIfAbsent(Self.pending + tag, for: claimKey, lifetime: Self.claimLifetime))
    }

    /// Stores the outcome for identical requests; if that fails they get none, but the code is never sent again.
    func complete(_ outcome: Result<SignIn, AuthenticationError>) async {
        do {
            try await outcomes.set(try seal.seal(outcome), for: outcomeKey, lifetime: Self.outcomeLifetime)
            try await claims.set(Self.completed + tag, for: claimKey, lifetime: Self.claimLifetime)
        } catch {
            logger.warning("storing a login outcome failed", ("code", "wechat.outcome_lost"))
        }
    }

    /// Waits for the outcome of the identical request that has claimed the code.
    /// - Throws: `wechat.code_reused` if the code was claimed by a different request or too long ago, `unavailable` if
    ///   the outcome is unknown.
    func outcomeOfFirst(
        until deadline: MonotonicTime
    ) async throws(AuthenticationError) -> Result<SignIn, AuthenticationError> {
        while true {
            // In this order: an outcome that is stored after the first read is found by the second.
            let claim = try await AuthenticationError.value(for: claimKey, in: claims)
            guard isRepeatable, let claim, ConstantTime.areEqual(Array(claim.dropFirst()), tag) else {
                throw .codeReused
            }
            if let sealed = try await AuthenticationError.value(for: outcomeKey, in: outcomes) {
                guard let outcome = seal.open(sealed) else { throw .codeReused }
                return outcome
            }
            if claim.first != Self.pending.first { throw .codeReused }
            guard clock.monotonicTime + Self.pollInterval < deadline, !Task.isCancelled else { throw .outcomeUnknown }
            await sleep(Self.pollInterval)
        }
    }
}
