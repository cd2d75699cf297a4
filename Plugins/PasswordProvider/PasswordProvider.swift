public import MartletConfig
internal import MartletCore
internal import MartletCrypto
internal import MartletJSON
public import MartletProvider

/// Sign-in with a name and a password: users of the account store, or of an htpasswd file.
///
/// From outside, an unknown user, a disabled one and a wrong password are the same: one answer, after the same work.
public struct PasswordProvider: Provider {
    /// What its block is decoded to.
    public typealias Configuration = PasswordConfiguration

    public static let kind: ProviderKind = "password"

    /// How long a loop may rely on a Basic credential that was right, in seconds.
    private static let basicLifetime: Int64 = 10

    private static let attemptsAtOnce = 256
    private static let attemptsWaiting = 2048

    let context: ProviderContext
    let source: UserSource
    let throttle: Throttle
    let parameters: Argon2Parameters
    let minimumLength: Int
    /// Whether routes take `Authorization: Basic`.
    private let takesBasic: Bool
    let watch = FileWatch()
    /// What an unknown user is checked against.
    private let decoy: PasswordHash
    let flights = Flights<Identity>()
    /// Each attempt asks the store several things before there is a hash to wait for: a burst must leave it to others too.
    private let turns = FairGate(places: attemptsAtOnce, queue: attemptsWaiting)
    /// Names flights; the credentials themselves are kept nowhere.
    let flightKey: Secret

    /// Warns of what protects less than it should.
    public static func validate(_ configuration: PasswordConfiguration, into diagnostics: inout Diagnostics) {
        configuration.validate(into: &diagnostics)
    }

    public init(_ configuration: PasswordConfiguration, context: ProviderContext) throws(ConfigurationError) {
        switch configuration.users.value {
        case .accounts:
            guard let users = context.users else {
                throw ConfigurationError(
                    .configMissingKey, at: configuration.users.location,
                    "users: the users are in the account store, but there is no block 'accounts'")
            }
            source = .accounts(users)
        case .file(let file): source = .file(file)
        }
        self.context = context
        parameters = configuration.hash.parameters
        minimumLength = configuration.minimumLength.value
        takesBasic = configuration.takesBasic
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
    /// The one way in: throttle, look-up, hash, status, count.
    func logIn(
        _ name: [UInt8], _ password: Secret, in context: AuthenticationContext
    ) async throws(AuthenticationError) -> Identity {
        // A flood that finds no place for its hashes must not cost the store anything either.
        let owner = context.client?.workOwner ?? .anybody
        guard self.context.hashing.hasRoom(for: owner), await turns.enter(as: owner) else { throw Self.overloaded() }
        defer { turns.leave() }
        let key = canonicalKey(of: name)
        let attempt = try await throttle.admit(key.map { Array($0.utf8) } ?? name, from: context.client)
        let user: FoundUser?
        let verdict: Verdict
        do throws(AuthenticationError) {
            user = try await find(name, key: key)
            verdict = try await judge(user, password, in: context)
        } catch {
            await throttle.withdrew(attempt)
            throw error
        }
        guard let user, verdict.refusal == nil else {
            await throttle.failed(attempt)
            throw .rejected(verdict.refusal ?? "password.unknown_user")
        }
        await throttle.succeeded(attempt, at: context.now)
        if let replacement = verdict.replacement { await replaceHash(of: user, by: replacement) }
        return Identity(
            providerSubject: user.subject, issuer: Self.kind.rawValue,
            claims: ["preferred_username": .string(user.displayName)], authTime: context.now, issuedAt: context.now,
            expiresAt: context.now.advanced(bySeconds: Self.basicLifetime))
    }

    /// What a check said about a user.
    struct Verdict: Sendable {
        /// Why the user may not come in; for logs alone.
        let refusal: ErrorCode?
        /// A better hash, where one is due.
        let replacement: String?
    }

    /// Checks a password, with the same work whether or not there is such a user.
    func judge(
        _ user: FoundUser?, _ password: Secret, in context: AuthenticationContext
    ) async throws(AuthenticationError) -> Verdict {
        let text = try? PasswordText(password)
        let refusal = Self.refusal(of: user, hasText: text != nil)
        let hash = refusal == nil ? user?.hash : nil
        let check = PasswordCheck(
            hash: hash ?? stand(), candidates: text?.candidates ?? [Secret([])], mayMatch: hash != nil,
            target: user?.stored == nil ? nil : parameters)
        let outcome = try await inPool(for: context.client, until: context.deadline) { () throws(CryptoError) in
            try check.run()
        }
        if let refusal { return Verdict(refusal: refusal, replacement: nil) }
        return Verdict(
            refusal: outcome.matches ? nil : "password.wrong_password", replacement: outcome.replacement)
    }

    /// Why nothing can come of a check, whatever the password.
    private static func refusal(of user: FoundUser?, hasText: Bool) -> ErrorCode? {
        guard let user else { return "password.unknown_user" }
        guard !user.isDisabled else { return "password.disabled" }
        guard user.hash != nil else { return "password.unusable_hash" }
        return hasText ? nil : "password.unusable_password"
    }

    /// The hash that takes the time of a user's who is not there.
    private func stand() -> PasswordHash {
        if case .file(let file) = source, let typical = file.users.typical { return typical }
        return decoy
    }

    /// The form of a typed name that throttles and records go by.
    func canonicalKey(of name: [UInt8]) -> String? {
        String(validating: name, as: UTF8.self).flatMap(UserName.canonical)
    }

    func find(_ name: [UInt8], key: String?) async throws(AuthenticationError) -> FoundUser? {
        do {
            return try await source.find(name, key: key)
        } catch {
            throw .unavailable("password.users_unavailable", cause: error)
        }
    }

    /// Puts a better hash in place of exactly the old one; a change made meanwhile wins, and a failure costs nothing.
    private func replaceHash(of user: FoundUser, by replacement: String) async {
        guard case .accounts(let users) = source, let stored = user.stored else { return }
        do {
            _ = try await users.replaceHash(of: user.subject, from: stored, to: replacement)
        } catch {
            context.logger.warning("a user's old hash could not be replaced", ("reason", error.code.rawValue))
        }
    }

    private static func overloaded(_ cause: (any Error)? = nil) -> AuthenticationError {
        .unavailable("password.overloaded", retryAfter: .seconds(1), cause: cause)
    }

    /// Does work on the threads for it, in the places of the network that causes it.
    func inPool<Value: Sendable>(
        for client: ClientNetwork?, until deadline: MonotonicTime,
        _ work: @escaping @Sendable () throws(CryptoError) -> Value
    ) async throws(AuthenticationError) -> Value {
        let result: Result<Value, CryptoError>
        do {
            result = try await context.hashing.run(until: deadline, for: client?.workOwner ?? .anybody) {
                () -> Result<Value, CryptoError> in
                do throws(CryptoError) { return .success(try work()) } catch { return .failure(error) }
            }
        } catch {
            throw Self.overloaded(error)
        }
        do { return try result.get() } catch { throw .unavailable("password.hash_failed", cause: error) }
    }
}

extension PasswordProvider: SigningIn {
    /// Beyond what the throttle lets through from one address: it is the wider networks that are bounded here.
    public var failureLimit: FailureLimit {
        FailureLimit(attempts: throttle.limits.addressAttempts * 2, window: throttle.limits.addressWindow)
    }

    /// Takes the members `username` and `password`.
    public func signIn(
        with form: SignInForm, in context: AuthenticationContext
    ) async throws(AuthenticationError) -> SignIn {
        // A copy: what a secret lends is wiped with it.
        let name = try form.requiredSecret("username").withBytes { $0.map { $0 } }
        return SignIn(identity: try await logIn(name, try form.requiredSecret("password"), in: context))
    }
}

extension PasswordProvider: Authenticating {
    public var accepts: [CredentialSource] { takesBasic ? [.basic] : [] }

    /// Takes Basic credentials; the same one from the same place is judged once at a time.
    public func authenticate(
        _ credential: Credential, in context: AuthenticationContext
    ) async throws(AuthenticationError) -> Identity {
        guard credential.scheme == .basic, let basic = credential.withBytes(BasicCredential.init) else {
            throw .rejected("password.malformed_basic")
        }
        let token = credential.withBytes { HMACSHA256.authenticate($0, key: flightKey) }
        let place = Array((context.client?.description ?? "").utf8)
        return try await flights.join(token + place) { () async throws(AuthenticationError) in
            try await logIn(basic.name, basic.password, in: context)
        }
    }
}

extension PasswordProvider: Running {
    /// Begins to look after the file of users, where there is one.
    public func start() async {
        guard case .file(let file) = source else { return }
        watch.start { [context, flights] in
            switch file.refresh(now: context.clock.unixTime) {
            case .unchanged, .stillRefused: break
            case .changed:
                flights.closeDoors()
                context.forgetVerdicts()
                context.logger.info(
                    "a file of users was read", ("file", file.path), ("users", String(file.users.count)))
            case .refused(let reason):
                context.logger.error(
                    "a file of users cannot be used; the users read before stay", ("file", file.path),
                    ("reason", reason))
            }
        }
    }

    /// Ends that.
    public func shutdown() async { watch.stop() }
}

extension PasswordProvider: Reporting {
    public var health: ProviderHealth {
        guard case .file(let file) = source else {
            return ProviderHealth(state: .ready, detail: "users of the account store", gauges: [])
        }
        let count = file.users.count
        let failure = file.failure.map { ", the file cannot be used now: \($0)" } ?? ""
        return ProviderHealth(
            state: failure.isEmpty ? .ready : .degraded, detail: "\(count) users of '\(file.path)'\(failure)",
            gauges: [.init(name: "users", help: "Users of the file.", kind: .gauge, value: Double(count))])
    }
}
