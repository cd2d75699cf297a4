internal import MartletCore
private import MartletCrypto
internal import MartletProvider

/// Gives an identical login from the same client the same outcome for a few seconds: after a lost response, or a double
/// tap, although its nonce and its code can be used once.
///
/// The store has the outcome under a digest of all that the login consists of, sealed with a key derived from it.
struct LoginLedger: Sendable {
    /// How long an identical login gets the same outcome.
    static let lifetime = Duration.seconds(10)
    /// For how long the first of several identical logins has a claim beyond its deadline; one whose instance was killed
    /// keeps its user out no longer.
    private static let claimReserve = Duration.seconds(5)
    private static let pollInterval = Duration.milliseconds(50)
    private static let pending: [UInt8] = [0]

    private let store: any SharedStoring
    private let clock: Clock
    private let logger: Logger
    private let key: String
    private let proof: Secret
    private let seal: OutcomeSeal

    /// - Returns: `nil` for a login that cannot be distinguished from another client's.
    init?(_ request: LoginRequest, in login: AuthenticationContext, of context: ProviderContext) {
        guard let scope = login.repetitionScope else { return nil }
        var message: [UInt8] = []
        func add(_ part: [UInt8]?) { message += part.map { [1] + SHA256.digest($0) } ?? [0] }
        add(Array(context.name.utf8))
        add(scope)
        add(request.authorizationCode.map { code in code.withBytes { $0 } })
        for text in [request.nonce, request.user, request.name] { add(text.map { Array($0.utf8) }) }
        let whole = message
        proof = request.identityToken.withBytes { token in
            Secret(HMACSHA256.authenticate(whole, key: Secret(token.map(\.self))))
        }
        let digest = Base64URL.encode(proof.withBytes { SHA256.digest($0) })
        key = context.storeKey("outcome:\(digest)")
        store = context.store.partition(.outcomes, for: login.owner)
        clock = context.clock
        logger = context.logger
        seal = OutcomeSeal(proof: proof, purpose: "martlet apple outcome", binding: key)
    }

    /// How the response is repeated for an identical login.
    var repetition: SignIn.Repetition {
        SignIn.Repetition(
            name: Base64URL.encode(proof.withBytes { SHA256.digest(Array("response".utf8) + $0) }),
            key: HKDFSHA256.derive(
                from: proof, salt: [], purpose: Array("martlet apple response".utf8), length: AES256GCM.keyLength))
    }

    /// Runs what uses the proofs up, or returns the outcome of the identical login that has done so a moment ago.
    ///
    /// It runs to its end even if the client has disconnected: its next attempt gets the outcome.
    /// - Throws: what `consume` throws; `apple.store_unavailable`; `apple.outcome_unknown` if the first login takes too
    ///   long.
    func run(
        until deadline: MonotonicTime,
        _ consume: @escaping @Sendable () async throws(AuthenticationError) -> SignIn
    ) async throws(AuthenticationError) -> SignIn {
        let outcome: Result<SignIn, AuthenticationError>
        if let first = try await outcomeOfFirst(until: deadline) {
            outcome = first
        } else {
            outcome = await Task { () -> Result<SignIn, AuthenticationError> in
                let outcome: Result<SignIn, AuthenticationError>
                do throws(AuthenticationError) { outcome = .success(try await consume()) } catch {
                    outcome = .failure(error)
                }
                await complete(outcome)
                return outcome
            }.value
        }
        let signIn = try outcome.get()
        return SignIn(
            identity: signIn.identity, storedClaims: signIn.storedClaims, repetition: repetition, grant: signIn.grant,
            isFresh: signIn.isFresh)
    }

    /// - Returns: `nil` if this is the first login of its kind, which is claimed by that.
    private func outcomeOfFirst(
        until deadline: MonotonicTime
    ) async throws(AuthenticationError) -> Result<SignIn, AuthenticationError>? {
        while true {
            let lifetime = max(deadline.since(clock.monotonicTime), .zero) + Self.claimReserve
            do throws(StoreError) {
                if try await store.setIfAbsent(Self.pending, for: key, lifetime: lifetime) { return nil }
            } catch {
                throw Self.unavailable(error)
            }
            switch await store.value(for: key) {
            case .found(let value): if let outcome = seal.open(value) { return outcome }
            case .miss: break
            case .unavailable(let error): throw Self.unavailable(error)
            }
            guard clock.monotonicTime + Self.pollInterval < deadline, !Task.isCancelled else { throw .outcomeUnknown }
            do { try await Task.sleep(for: Self.pollInterval) } catch { throw .outcomeUnknown }
        }
    }

    /// Stores the outcome; a login that could not use anything up may be attempted again.
    private func complete(_ outcome: Result<SignIn, AuthenticationError>) async {
        do {
            if case .failure(let error) = outcome, Self.usedNothing(error) { return try await store.remove(key) }
            try await store.set(try seal.seal(outcome), for: key, lifetime: Self.lifetime)
        } catch {
            logger.warning("storing a login outcome failed", ("code", "apple.outcome_lost"))
        }
    }

    private static func usedNothing(_ error: AuthenticationError) -> Bool {
        error.disposition == .throttled || ["apple.store_unavailable", "apple.api_overloaded"].contains(error.code)
    }

    private static func unavailable(_ error: StoreError) -> AuthenticationError {
        AppleProvider.authenticationError(AppleError(error, "claiming a login failed"))
    }
}

extension AuthenticationError {
    /// The first of several identical logins has no outcome yet.
    fileprivate static let outcomeUnknown = AuthenticationError.unavailable("apple.outcome_unknown")
}
