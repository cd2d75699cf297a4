internal import MartletCore
internal import MartletCrypto
internal import MartletProvider

/// Returns the same response, including its tokens, for an identical login request instead of creating another session.
///
/// The provider decides which requests are identical and for how long. The response is stored sealed with a key that is
/// derived from the request; the first of several concurrent requests, over all instances, creates the session.
struct LoginRepetition: Sendable {
    /// The result of claiming a request.
    enum Claim: Sendable {
        /// The first request: the caller handles it and then calls ``complete(_:)`` or ``release()``.
        case first
        /// A repeated request, with the response body of the first.
        case repeated([UInt8])
    }

    /// Longer than a provider treats requests as identical, even after a login that took until its deadline.
    private static let lifetime = Duration.seconds(30)
    private static let pollInterval = Duration.milliseconds(50)
    private static let mark: [UInt8] = [1]

    private let store: any SharedStoring
    private let clock: Clock
    private let claimKey: String
    private let responseKey: String
    private let key: Secret

    init(_ repetition: SignIn.Repetition, provider: String, setup: SignInSetup) {
        store = setup.store.partition(.outcomes)
        clock = setup.clock
        key = repetition.key
        let name = Base64URL.encode(SHA256.digest(Array("\(provider)\u{0}\(repetition.name)".utf8)))
        claimKey = "\(setup.storeKeyPrefix)signin:repetition:\(name)"
        responseKey = "\(setup.storeKeyPrefix)signin:answer:\(name)"
    }

    /// Claims the request, or waits for the response to the identical request that has claimed it.
    /// - Throws: when the store is unavailable, or the first request has no response by the deadline.
    func claim(until deadline: MonotonicTime) async throws(StoreError) -> Claim {
        while true {
            if let body = try await storedBody() { return .repeated(body) }
            if try await store.setIfAbsent(Self.mark, for: claimKey, lifetime: Self.lifetime) { return .first }
            guard clock.monotonicTime + Self.pollInterval < deadline else { throw Self.unknown }
            do { try await Task.sleep(for: Self.pollInterval) } catch { throw Self.unknown }
        }
    }

    /// Stores the response body for identical requests.
    func complete(_ body: [UInt8]) async {
        guard let sealed = try? AES256GCM.seal(body, with: key, context: Array(responseKey.utf8)) else { return }
        try? await store.set(sealed, for: responseKey, lifetime: Self.lifetime)
    }

    /// Releases the claim after a failure, so that the next request can succeed.
    func release() async { try? await store.remove(claimKey) }

    private func storedBody() async throws(StoreError) -> [UInt8]? {
        switch await store.value(for: responseKey) {
        case .miss: return nil
        case .unavailable(let error): throw error
        case .found(let sealed):
            return AES256GCM.open(sealed, with: key, context: Array(responseKey.utf8))?.withBytes { $0 }
        }
    }

    private static let unknown = StoreError(
        code: .signInRepetitionUnknown, message: "no response to the first of several identical requests")
}
