internal import MartletCore
internal import MartletCrypto
internal import MartletProvider

/// Sees to it that a code goes out once, ever, over all instances; and that who posts it twice gets one answer.
///
/// The store holds two things per code, both under a digest of it: that it was used, for longer than any code lives, and
/// for a few seconds what came of it, sealed under a key that only who has the code can make.
struct CodeLedger: Sendable {
    /// What a post of a code is.
    enum Claim: Sendable {
        /// The first: the code may be sent.
        case first
        /// The same as an earlier one, which has ended so.
        case repeated(Result<SignIn, AuthenticationError>)
    }

    /// Longer than any code lives.
    static let memory = Duration.seconds(900)
    /// How long the same post gets the same answer.
    static let repetition = Duration.seconds(10)
    /// How often a second post looks for the first one's answer.
    static let interval = Duration.milliseconds(50)

    private static let underWay: [UInt8] = [0]
    private static let settled: [UInt8] = [1]

    private let store: any SharedStoring
    private let clock: Clock
    private let logger: Logger
    private let claimKey: String
    private let outcomeKey: String
    private let tag: [UInt8]
    private let seal: OutcomeSeal
    private let pause: @Sendable (Duration) async -> Void

    init(_ post: LoginPost, context: ProviderContext, pause: @escaping @Sendable (Duration) async -> Void) {
        let digest = post.digest
        store = context.store
        clock = context.clock
        logger = context.logger
        claimKey = context.storeKey("code:\(digest)")
        outcomeKey = context.storeKey("outcome:\(digest)")
        tag = post.tag
        seal = OutcomeSeal(code: post.code, binding: claimKey)
        self.pause = pause
    }

    /// Takes the code, or waits for what the post that has taken it comes to.
    /// - Throws: `wechat.code_reused` for another post or one too late, `unavailable` where the store cannot tell.
    func claim(until deadline: MonotonicTime) async throws(AuthenticationError) -> Claim {
        let isFirst: Bool
        do throws(StoreError) {
            isFirst = try await store.setIfAbsent(Self.underWay + tag, for: claimKey, lifetime: Self.memory)
        } catch {
            throw .storeUnavailable(error)
        }
        return isFirst ? .first : .repeated(try await outcomeOfFirst(until: deadline))
    }

    /// Tells the others what came of it; what cannot be written is lost to them, and nobody sends the code again.
    func settle(_ outcome: Result<SignIn, AuthenticationError>) async {
        do {
            try await store.set(try seal.close(outcome), for: outcomeKey, lifetime: Self.repetition)
            try await store.set(Self.settled + tag, for: claimKey, lifetime: Self.memory)
        } catch {
            logger.warning("the answer to a code could not be kept", ("code", "wechat.outcome_lost"))
        }
    }

    private func outcomeOfFirst(
        until deadline: MonotonicTime
    ) async throws(AuthenticationError) -> Result<SignIn, AuthenticationError> {
        while true {
            // In this order: what is settled after the first look is there at the second.
            let claim = try await read(claimKey)
            guard let claim, ConstantTime.areEqual(Array(claim.dropFirst()), tag) else { throw .codeReused }
            if let sealed = try await read(outcomeKey) {
                guard let outcome = seal.open(sealed) else { throw .codeReused }
                return outcome
            }
            if claim.first != Self.underWay.first { throw .codeReused }
            guard clock.monotonicTime + Self.interval < deadline, !Task.isCancelled else { throw .outcomeUnknown }
            await pause(Self.interval)
        }
    }

    private func read(_ key: String) async throws(AuthenticationError) -> [UInt8]? {
        switch await store.value(for: key) {
        case .answer(let value): return value
        case .miss: return nil
        case .unavailable(let error): throw .storeUnavailable(error)
        }
    }
}
