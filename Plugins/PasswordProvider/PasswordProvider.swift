public import MartletConfig
internal import MartletCore
internal import MartletCrypto
internal import MartletJSON
public import MartletProvider

/// Sign-in with a name and a password, for users in the account store or in an htpasswd file.
///
/// An unknown user, a disabled user and a wrong password are indistinguishable to clients: same response, same work.
public struct PasswordProvider: Provider {
    /// The type of the provider's configuration block.
    public typealias Configuration = PasswordConfiguration

    public static let kind: ProviderKind = "password"

    /// How long an event loop may cache a valid Basic credential, in seconds.
    private static let basicLifetime: Int64 = 10

    private static let concurrentAttempts = 256

    let context: ProviderContext
    let source: UserSource
    let throttle: Throttle
    let parameters: Argon2Parameters
    let minimumLength: Int
    let denied: DenyFile?
    public let selfService: PasswordSelfService
    /// Whether routes accept `Authorization: Basic`.
    private let acceptsBasic: Bool
    /// Polls the users file.
    let watch = RepeatedWork()
    /// The hash that passwords of unknown users are checked against.
    private let decoy: PasswordHash
    let singleFlight = SingleFlight<Identity>()
    /// Limits concurrent attempts: each makes several store requests before it queues for a hash, and a burst must not
    /// starve other users of the store.
    let attemptSlots = FairSemaphore(.passwordAttempts, permits: concurrentAttempts)
    /// The key of the MACs by which `singleFlight` identifies credentials; the credentials themselves are not stored.
    let flightKey: Secret

    /// Warns about weak settings.
    public static func validate(_ configuration: PasswordConfiguration, into diagnostics: inout Diagnostics) {
        configuration.validate(into: &diagnostics)
    }

    /// What the gateway needs for it.
    public static func facts(_ configuration: PasswordConfiguration) -> ProviderFacts {
        var facts = ProviderFacts()
        facts.storesUsers = configuration.storesRecords
        return facts
    }

    public init(_ configuration: PasswordConfiguration, context: ProviderContext) throws(ConfigurationError) {
        switch configuration.users.value {
        case .accounts:
            guard let users = context.users else {
                throw ConfigurationError(
                    .configMissingKey, at: configuration.users.location,
                    "users: accounts requires a block 'accounts'")
            }
            source = .accounts(users)
        case .file(let file): source = .file(file)
        }
        self.context = context
        parameters = configuration.hash.parameters
        minimumLength = configuration.minimumLength.value
        denied = configuration.denied
        selfService = configuration.selfService
        acceptsBasic = configuration.acceptsBasic
        throttle = Throttle(limits: configuration.throttle, context: context)
        do {
            decoy = try PasswordHash.decoy(parameters)
            flightKey = Secret(try RandomBytes.make(32))
        } catch {
            throw ConfigurationError(.configInvalid, at: configuration.users.location, error.message)
        }
    }
}

// MARK: - Logging in

extension PasswordProvider {
    /// The only login path: throttle, look up, hash, check the status, count the result.
    func logIn(
        _ name: [UInt8], _ password: Secret, in context: AuthenticationContext
    ) async throws(AuthenticationError) -> Identity {
        if let rejection = rejection(ofLoginFrom: context.client) { throw rejection }
        guard await attemptSlots.acquire(as: Self.owner(context.client)) else { throw Self.overloaded() }
        defer { attemptSlots.release() }
        let key = canonicalKey(of: name)
        let attempt = try await admit(name, key: key, from: context.client)
        let user: FoundUser?
        let result: CheckResult
        do throws(AuthenticationError) {
            user = try await find(name, key: key)
            result = try await verify(user, password, in: context)
        } catch {
            await throttle.withdraw(attempt)
            throw error
        }
        guard let user, result.failure == nil else {
            await throttle.recordFailure(attempt)
            throw .rejected(result.failure ?? "password.unknown_user").naming(user?.subject)
        }
        await throttle.recordSuccess(attempt, at: context.now)
        if let replacement = result.replacement { await replaceHash(of: user, by: replacement) }
        var claims = user.claims
        claims["preferred_username"] = .string(user.displayName)
        return Identity(
            providerSubject: user.subject, issuer: Self.kind.rawValue, claims: claims, authTime: context.now,
            issuedAt: context.now,
            expiresAt: context.now.advanced(bySeconds: Self.basicLifetime))
    }

    /// Admits an attempt; the rejection of one that is throttled names the user, for logs.
    private func admit(
        _ name: [UInt8], key: String?, from client: ClientNetwork?
    ) async throws(AuthenticationError) -> Throttle.Attempt {
        do throws(AuthenticationError) {
            return try await throttle.admit(key.map { Array($0.utf8) } ?? name, from: client)
        } catch {
            guard error.code == "password.throttled" else { throw error }
            throw error.naming((try? await find(name, key: key))?.subject)
        }
    }

    /// The result of checking a user's password.
    struct CheckResult: Sendable {
        /// Why the login fails, `nil` if it does not; for logs only.
        let failure: ErrorCode?
        /// A stronger hash of the same password, if it needs a rehash.
        let replacement: String?
    }

    /// Checks a password, with the same work whether or not the user exists.
    func verify(
        _ user: FoundUser?, _ password: Secret, in context: AuthenticationContext
    ) async throws(AuthenticationError) -> CheckResult {
        let text = try? PasswordText(password)
        let failure = Self.failure(of: user, hasText: text != nil)
        let hash = failure == nil ? user?.hash : nil
        let check = PasswordCheck(
            hash: hash ?? dummyHash(), candidates: text?.candidates ?? [Secret([])], mayMatch: hash != nil,
            target: user?.stored == nil ? nil : parameters)
        let (throttle, client) = (throttle, context.client)
        let outcome = try await runInPool(for: client, until: context.deadline) {
            () throws(CryptoError) -> Result<PasswordCheck.Outcome, AuthenticationError> in
            // Attempts that are queued when their address becomes throttled cost no hash any more.
            if let client, let rejection = throttle.rejection(of: client) { return .failure(rejection) }
            return .success(try check.run())
        }.get()
        if let failure { return CheckResult(failure: failure, replacement: nil) }
        return CheckResult(failure: outcome.matches ? nil : "password.wrong_password", replacement: outcome.replacement)
    }

    /// Why the login fails whatever the password; `nil` if the password decides.
    private static func failure(of user: FoundUser?, hasText: Bool) -> ErrorCode? {
        guard let user else { return "password.unknown_user" }
        guard !user.isDisabled else { return "password.disabled" }
        guard user.hash != nil else { return "password.unusable_hash" }
        return hasText ? nil : "password.unusable_password"
    }

    /// The hash to check for an unknown user, of the same cost as the others'.
    private func dummyHash() -> PasswordHash {
        if case .file(let file) = source, let typical = file.users.typical { return typical }
        return decoy
    }

    /// The canonical form of a name, which throttles and records are keyed by.
    func canonicalKey(of name: [UInt8]) -> String? {
        String(validating: name, as: UTF8.self).flatMap(UserName.canonical)
    }

    func find(_ name: [UInt8], key: String?) async throws(AuthenticationError) -> FoundUser? {
        try await Self.result("password.users_unavailable", await source.find(name, key: key))
    }

    /// What a store returns.
    /// - Parameter code: that of an outage.
    static func result<Value>(
        _ code: ErrorCode, _ value: @autoclosure () async throws(StoreError) -> Value
    ) async throws(AuthenticationError) -> Value {
        do throws(StoreError) { return try await value() } catch { throw .unavailable(code, cause: error) }
    }

    /// Replaces the hash if it is unchanged; a concurrent change wins, and a failure is only logged.
    private func replaceHash(of user: FoundUser, by replacement: String) async {
        guard case .accounts(let users) = source, let stored = user.stored else { return }
        do { _ = try await users.replaceHash(of: user.subject, from: stored, to: replacement) } catch {
            context.logger.warning("rehashing a password failed", ("code", error.code.rawValue))
        }
    }

    private static func owner(_ client: ClientNetwork?) -> WorkOwner { client?.workOwner ?? .anonymous }

    private static func overloaded(_ cause: (any Error)? = nil) -> AuthenticationError {
        .unavailable("password.overloaded", retryAfter: .seconds(1), cause: cause)
    }

    /// Runs work on the hashing pool, within the quota of the client's network.
    func runInPool<Value: Sendable>(
        for client: ClientNetwork?, until deadline: MonotonicTime,
        _ work: @escaping @Sendable () throws(CryptoError) -> Value
    ) async throws(AuthenticationError) -> Value {
        let result: Result<Value, CryptoError>
        do {
            result = try await context.hashing.run(until: deadline, for: Self.owner(client)) { Result(catching: work) }
        } catch {
            throw Self.overloaded(error)
        }
        do { return try result.get() } catch { throw .unavailable("password.hash_failed", cause: error) }
    }
}

extension PasswordProvider: SigningIn {
    /// Above the throttle's limit per address: this one bounds wider networks.
    public var failureLimit: FailureLimit {
        FailureLimit(attempts: throttle.limits.address.attempts * 2, window: throttle.limits.address.window)
    }

    /// Rejects those from an address with too many failures, and those that exceed the capacity for hashing.
    public func rejection(ofLoginFrom client: ClientNetwork?) -> AuthenticationError? {
        if let client, let rejection = throttle.rejection(of: client) { return rejection }
        return context.hashing.hasCapacity(for: Self.owner(client)) ? nil : Self.overloaded()
    }

    /// Logs in with the members `username` and `password`.
    public func signIn(
        with form: SignInForm, in context: AuthenticationContext
    ) async throws(AuthenticationError) -> SignIn {
        // A copy, because the secret wipes its bytes.
        let name = try form.requiredSecret("username").withBytes { $0.map { $0 } }
        let identity = try await logIn(name, try form.requiredSecret("password"), in: context)
        // The account keeps the name that a user registered with.
        var stored: JSONObject = [:]
        stored["name"] = identity.claims["name"]
        return SignIn(identity: identity, storedClaims: stored, isFresh: true)
    }
}

extension PasswordProvider: Authenticating {
    public var accepts: [CredentialSource] { acceptsBasic ? [.basic] : [] }

    /// Verifies Basic credentials; concurrent requests with the same credential from the same network share one check.
    public func authenticate(
        _ credential: Credential, in context: AuthenticationContext
    ) async throws(AuthenticationError) -> Identity {
        guard credential.scheme == .basic, let basic = credential.withBytes(BasicCredential.init) else {
            throw .rejected("password.malformed_basic")
        }
        let token = credential.withBytes { HMACSHA256.authenticate($0, key: flightKey) }
        let network = Array((context.client?.description ?? "").utf8)
        return try await singleFlight.join(token + network) { () async throws(AuthenticationError) in
            try await logIn(basic.name, basic.password, in: context)
        }
    }
}

extension PasswordProvider: Throttling {
    /// Rejects the credentials of an address with too many failures.
    public func rejection(of client: ClientNetwork) -> AuthenticationError? { throttle.rejection(of: client) }
}

extension PasswordProvider: Running {
    /// Starts watching the users file, if there is one.
    public func start() async {
        guard case .file(let file) = source else { return }
        let step: @Sendable () async -> Void = { [context, singleFlight] in
            switch file.refresh(now: context.clock.unixTime) {
            case .unchanged, .stillFailing: break
            case .changed:
                singleFlight.startNewEpoch()
                context.invalidateDecisions()
                context.logger.info("users file reloaded", ("file", file.path), ("users", String(file.users.count)))
            case .failed(let reason):
                context.logger.error(
                    "users file unusable, keeping the previous users", ("file", file.path),
                    ("reason", reason))
            }
        }
        watch.start(after: { .seconds(1) }, step)
    }

    /// Stops watching the users file.
    public func shutdown() async { watch.cancel() }
}

extension PasswordProvider: Reporting {
    public var health: ProviderHealth {
        guard case .file(let file) = source else {
            return ProviderHealth(state: .ready, detail: "users in the account store", gauges: [])
        }
        let count = file.users.count
        let failure = file.failure.map { ", file unusable: \($0)" } ?? ""
        return ProviderHealth(
            state: failure.isEmpty ? .ready : .degraded, detail: "\(count) users in '\(file.path)'\(failure)",
            gauges: [.init(name: "users", help: "Users in the file.", kind: .gauge, value: Double(count))])
    }
}
