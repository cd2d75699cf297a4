internal import MartletCore
internal import MartletCrypto
internal import MartletProvider

/// Sees to it that a code goes out once, ever, over all instances; and that who posts it twice from the same place gets
/// one answer.
///
/// The store holds two things per code, both under a digest of it: that it was used, for longer than any code lives, and
/// for a few seconds what came of it, sealed under a key that only who has the code can make.
struct CodeLedger: Sendable {
    /// Longer than any code lives.
    static let memory = Duration.seconds(900)
    /// How long the same post gets the same answer.
    static let repetition = Duration.seconds(10)
    /// How often a second post looks for the first one's answer.
    static let interval = Duration.milliseconds(50)

    private static let underWay: [UInt8] = [0]
    private static let settled: [UInt8] = [1]

    private let claims: any SharedStoring
    private let outcomes: any SharedStoring
    private let clock: Clock
    private let logger: Logger
    private let claimKey: String
    private let outcomeKey: String
    private let tag: [UInt8]
    private let isRepeatable: Bool
    private let seal: OutcomeSeal
    private let pause: @Sendable (Duration) async -> Void

    init(_ post: LoginPost, context: ProviderContext, pause: @escaping @Sendable (Duration) async -> Void) {
        let digest = post.digest
        claims = context.store.partition(.codes)
        outcomes = context.store.partition(.outcomes)
        clock = context.clock
        logger = context.logger
        claimKey = context.storeKey(sharedBy: WeChatProvider.kind, "code:\(digest)")
        outcomeKey = context.storeKey("outcome:\(digest)")
        tag = post.tag
        isRepeatable = post.isRepeatable
        seal = OutcomeSeal(code: post.code, binding: claimKey)
        self.pause = pause
    }

    /// Whether a post has taken the code already.
    /// - Throws: `unavailable` where the store cannot tell.
    func isClaimed() async throws(AuthenticationError) -> Bool { try await read(claimKey, in: claims) != nil }

    /// Takes the code; to be called when it can be sent at once.
    /// - Returns: `false` when another post was first.
    /// - Throws: `unavailable` where the store cannot tell.
    func claim() async throws(AuthenticationError) -> Bool {
        do throws(StoreError) {
            return try await claims.setIfAbsent(Self.underWay + tag, for: claimKey, lifetime: Self.memory)
        } catch {
            throw .storeUnavailable(error)
        }
    }

    /// Tells the others what came of it; what cannot be written is lost to them, and nobody sends the code again.
    func settle(_ outcome: Result<SignIn, AuthenticationError>) async {
        do {
            try await outcomes.set(try seal.close(outcome), for: outcomeKey, lifetime: Self.repetition)
            try await claims.set(Self.settled + tag, for: claimKey, lifetime: Self.memory)
        } catch {
            logger.warning("the answer to a code could not be kept", ("code", "wechat.outcome_lost"))
        }
    }

    /// Waits for what the same post came to that has taken the code.
    /// - Throws: `wechat.code_reused` where that was another post or too long ago, `unavailable` where nobody can tell.
    func outcomeOfFirst(
        until deadline: MonotonicTime
    ) async throws(AuthenticationError) -> Result<SignIn, AuthenticationError> {
        while true {
            // In this order: what is settled after the first look is there at the second.
            let claim = try await read(claimKey, in: claims)
            guard isRepeatable, let claim, ConstantTime.areEqual(Array(claim.dropFirst()), tag) else {
                throw .codeReused
            }
            if let sealed = try await read(outcomeKey, in: outcomes) {
                guard let outcome = seal.open(sealed) else { throw .codeReused }
                return outcome
            }
            if claim.first != Self.underWay.first { throw .codeReused }
            guard clock.monotonicTime + Self.interval < deadline, !Task.isCancelled else { throw .outcomeUnknown }
            await pause(Self.interval)
        }
    }

    private func read(
        _ key: String, in store: any SharedStoring
    ) async throws(AuthenticationError) -> [UInt8]? {
        switch await store.value(for: key) {
        case .answer(let value): return value
        case .miss: return nil
        case .unavailable(let error): throw .storeUnavailable(error)
        }
    }
}
