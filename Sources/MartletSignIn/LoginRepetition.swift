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
        /// A repeated request, whose first one has bound the session otherwise.
        case boundOtherwise
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
    private let thumbprint: [UInt8]

    /// - Parameter thumbprint: of the client's key. Other keys are no other request, which would be one more session for
    ///   the same proof of identity; but they do not get the response.
    /// - Parameter owner: the client's network.
    init(
        _ repetition: SignIn.Repetition, provider: String, boundTo thumbprint: String? = nil, for owner: WorkOwner,
        setup: SignInSetup
    ) {
        store = setup.store.partition(.outcomes, for: owner)
        clock = setup.clock
        key = repetition.key
        let name = Base64URL.encode(SHA256.digest(Array("\(provider)\u{0}\(repetition.name)".utf8)))
        claimKey = "\(setup.storeKeyPrefix)signin:repetition:\(name)"
        responseKey = "\(setup.storeKeyPrefix)signin:answer:\(name)"
        self.thumbprint = Array((thumbprint ?? "").utf8)
    }

    /// Claims the request, or waits for the response to the identical request that has claimed it.
    /// - Throws: when the store is unavailable, or the first request has no response by the deadline.
    func claim(until deadline: MonotonicTime) async throws(StoreError) -> Claim {
        while true {
            if let claim = try await storedResponse() { return claim }
            if try await store.setIfAbsent(Self.mark, for: claimKey, lifetime: Self.lifetime) { return .first }
            guard clock.monotonicTime + Self.pollInterval < deadline else { throw Self.unknown }
            do { try await Task.sleep(for: Self.pollInterval) } catch { throw Self.unknown }
        }
    }

    /// Stores the response body for identical requests.
    func complete(_ body: [UInt8]) async {
        let context = context(isBound: !thumbprint.isEmpty)
        guard let sealed = try? AES256GCM.seal(thumbprint + body, with: key, context: context) else { return }
        try? await store.set(sealed, for: responseKey, lifetime: Self.lifetime)
    }

    /// Releases the claim after a failure, so that the next request can succeed.
    func release() async { try? await store.remove(claimKey) }

    /// The response that is stored, if there is one; a request that asks for no more claims nothing.
    func storedResponse() async throws(StoreError) -> Claim? {
        switch await store.value(for: responseKey) {
        case .miss: return nil
        case .unavailable(let error): throw error
        case .found(let sealed):
            if let body = AES256GCM.open(sealed, with: key, context: context(isBound: false)) {
                return thumbprint.isEmpty ? .repeated(body.withBytes { $0 }) : .boundOtherwise
            }
            return AES256GCM.open(sealed, with: key, context: context(isBound: true))?.withBytes { bytes in
                guard !thumbprint.isEmpty, bytes.starts(with: thumbprint) else { return .boundOtherwise }
                return .repeated(Array(bytes.dropFirst(thumbprint.count)))
            }
        }
    }

    /// Of its own for responses that begin with a thumbprint, so that instances that know none do not use them.
    private func context(isBound: Bool) -> [UInt8] { Array((responseKey + (isBound ? " bound" : "")).utf8) }

    private static let unknown = StoreError(
        code: .signInRepetitionUnknown, message: "no response to the first of several identical requests")
}
