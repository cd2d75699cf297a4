internal import MartletCore
internal import MartletCrypto
internal import MartletProvider

/// Gives a post that comes again the answer that it got, tokens and all, instead of a session more.
///
/// The provider says which posts are the same and for how long. The answer is kept in the store, sealed under a key that
/// only who sends the post can make; the first of several at once, over all instances, makes the session.
struct LoginRepetition: Sendable {
    /// What a post is.
    enum Claim: Sendable {
        /// The first: it is to be answered, and then ``settle(_:)`` or ``release()`` called.
        case first
        /// One more; the body that the first was answered with.
        case known([UInt8])
    }

    /// Longer than a provider gives the same answer after a login that took all its time.
    private static let lifetime = Duration.seconds(30)
    private static let interval = Duration.milliseconds(50)
    private static let mark: [UInt8] = [1]

    private let store: any SharedStoring
    private let clock: Clock
    private let claimKey: String
    private let answerKey: String
    private let key: Secret

    init(_ repetition: SignIn.Repetition, provider: String, setup: SignInSetup) {
        store = setup.store.partition(.outcomes)
        clock = setup.clock
        key = repetition.key
        let name = Base64URL.encode(SHA256.digest(Array("\(provider)\u{0}\(repetition.name)".utf8)))
        claimKey = "\(setup.storeKeyPrefix)signin:repetition:\(name)"
        answerKey = "\(setup.storeKeyPrefix)signin:answer:\(name)"
    }

    /// Takes the post, or waits for what the one that has taken it is answered with.
    /// - Throws: when the store cannot tell, or nothing has come of the first until the deadline.
    func claim(until deadline: MonotonicTime) async throws(StoreError) -> Claim {
        while true {
            if let answer = try await answer() { return .known(answer) }
            if try await store.setIfAbsent(Self.mark, for: claimKey, lifetime: Self.lifetime) { return .first }
            guard clock.monotonicTime + Self.interval < deadline else { throw Self.unknown }
            do { try await Task.sleep(for: Self.interval) } catch { throw Self.unknown }
        }
    }

    /// Keeps the answer for the others.
    func settle(_ body: [UInt8]) async {
        guard let sealed = try? AES256GCM.seal(body, with: key, context: Array(answerKey.utf8)) else { return }
        try? await store.set(sealed, for: answerKey, lifetime: Self.lifetime)
    }

    /// Lets the next one try, because nothing came of this one.
    func release() async { try? await store.remove(claimKey) }

    private func answer() async throws(StoreError) -> [UInt8]? {
        switch await store.value(for: answerKey) {
        case .miss: return nil
        case .unavailable(let error): throw error
        case .answer(let sealed):
            return AES256GCM.open(sealed, with: key, context: Array(answerKey.utf8))?.withBytes { $0 }
        }
    }

    private static let unknown = StoreError(
        code: .signInRepetitionUnknown, message: "nobody knows what the first of several equal posts came to")
}
