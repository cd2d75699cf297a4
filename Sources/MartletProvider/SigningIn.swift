public import MartletCore
public import MartletJSON

/// A provider whose credential is sent in a body: `POST /auth/login/{provider}` and `POST /auth/link/{provider}`.
public protocol SigningIn: FailureLimiting {
    /// Whether the configuration allows logins; the endpoints of the provider do not exist otherwise.
    var acceptsSignIn: Bool { get }

    /// The rejection of any login from this network now, whatever it sends; `nil` if it has to be authenticated.
    ///
    /// Called before the gateway reads anything for the login, so that a flood loads no store: it must return
    /// immediately, and acquire no lock that is held for long.
    func rejection(ofLoginFrom client: ClientNetwork?) -> AuthenticationError?

    /// Authenticates the sender of the form; may suspend, but must not block a thread.
    ///
    /// A single-use credential is consumed by this call, whether or not it succeeds.
    /// - Throws: `AuthenticationError` of any disposition.
    func signIn(with form: SignInForm, in context: AuthenticationContext) async throws(AuthenticationError) -> SignIn
}

extension SigningIn {
    public var acceptsSignIn: Bool { true }

    /// `nil`.
    public func rejection(ofLoginFrom client: ClientNetwork?) -> AuthenticationError? { nil }
}

/// The result of a login at a provider.
public struct SignIn: Sendable {
    /// Makes a login idempotent: a repeated POST gets the same response.
    ///
    /// The response is stored for 30 s; the provider decides how long it accepts a repeated POST, up to 20 s.
    public struct Repetition: Sendable {
        /// Equal for equal POSTs only; reveals nothing to its reader.
        public let name: String
        /// 32 bytes that only the sender of the POST can derive; the stored response is encrypted with them.
        public let key: Secret

        public init(name: String, key: Secret) {
            self.name = name
            self.key = key
        }
    }

    /// The identity; its `expiresAt` is ignored, because a session has its own expiry.
    public let identity: Identity
    /// Other subjects that the same provider uses, or has used, for the same user.
    ///
    /// The account store links them all to one account, so that a user first seen under one of them is recognized.
    public let aliases: [String]
    /// Whether the account that the last known alias belongs to is that of the login, even if the identity's own
    /// subject belongs to another one: for aliases that are never given to another user. Otherwise the subject counts
    /// first.
    public let aliasesDecide: Bool
    /// The error of the login if none of its subjects has an account yet; `nil`: an account is created.
    ///
    /// For a user whose other subjects could not be found out, so that an account would be a second one.
    public let unlessKnown: AuthenticationError?
    /// Claims that the provider sends only once, such as `name`; the account stores them from the first login.
    public let storedClaims: JSONObject
    /// `nil` if each POST is a separate login.
    public let repetition: Repetition?
    /// What the issuer granted with this login; `nil` if nothing.
    public let grant: ProviderGrant?
    /// Whether the proof was made for this login and can be used for no other, such as a password or a code.
    ///
    /// A token was issued before, perhaps before its identity left an account or its consent was withdrawn.
    public let isFresh: Bool

    public init(
        identity: Identity, aliases: [String] = [], storedClaims: JSONObject = [:], repetition: Repetition? = nil,
        grant: ProviderGrant? = nil, isFresh: Bool = false, aliasesDecide: Bool = false,
        unlessKnown: AuthenticationError? = nil
    ) {
        self.aliasesDecide = aliasesDecide
        self.unlessKnown = unlessKnown
        self.isFresh = isFresh
        self.identity = identity
        self.aliases = aliases
        self.storedClaims = storedClaims
        self.repetition = repetition
        self.grant = grant
    }
}

extension SignIn {
    /// When its proof was made, to be compared with the end of an identity or of a consent: of a token the second in which
    /// it was issued, and for a fresh one the next, since it came after all that has happened.
    package func provedAt(_ now: UnixTime) -> UnixTime { isFresh ? now.advanced(bySeconds: 1) : identity.issuedAt }
}

/// The members of a login body, JSON or form. Each occurs at most once; unknown members are ignored.
public struct SignInForm: Sendable {
    private let texts: [String: Secret]
    private let others: [String: JSONValue]
    /// Whether the body was `application/x-www-form-urlencoded`, where every member is a string.
    public let isForm: Bool
    /// Whether the body has members that are not here because their names are not ASCII.
    package var hasOtherNames = false

    /// - Parameters:
    ///   - texts: the string members, as UTF-8.
    ///   - others: the members of other types.
    public init(texts: [String: Secret], others: [String: JSONValue], isForm: Bool) {
        self.texts = texts
        self.others = others
        self.isForm = isForm
    }

    /// Whether it has one of these members, of any type.
    package func hasAny(of names: Set<String>) -> Bool {
        names.contains { texts[$0] != nil || others[$0] != nil }
    }

    /// The names of its members, of any type.
    package var names: [String] { Array(texts.keys) + Array(others.keys) }

    /// All members, for a provider that passes them on; they may contain secrets and must not be logged.
    public var members: JSONObject {
        let strings = texts.map { name, text in
            (name, JSONValue.string(text.withBytes { String(decoding: $0, as: UTF8.self) }))
        }
        return JSONObject((strings + others.map { ($0.key, $0.value) }).sorted { $0.0 < $1.0 })
    }

    /// An optional string that is not a secret; `nil` if absent or `null`.
    /// - Throws: `malformed` with `signin.bad_member` for another type.
    public func text(_ name: String) throws(AuthenticationError) -> String? {
        try secret(name).map { $0.withBytes { String(decoding: $0, as: UTF8.self) } }
    }

    /// A required string.
    /// - Throws: `malformed` with `signin.missing_member` or `signin.bad_member`.
    public func requiredText(_ name: String) throws(AuthenticationError) -> String {
        guard let text = try text(name) else { throw missing(name) }
        return text
    }

    /// An optional secret, such as a password, a code or a token; `nil` if absent or `null`.
    /// - Throws: `malformed` with `signin.bad_member` for another type.
    public func secret(_ name: String) throws(AuthenticationError) -> Secret? {
        if let text = texts[name] { return text }
        switch others[name] {
        case nil, .null: return nil
        default:
            throw .malformed(.signInBadMember, BodyError(name, .unknownType, detail: "`\(name)` must be a string."))
        }
    }

    /// A required secret.
    /// - Throws: `malformed` with `signin.missing_member` or `signin.bad_member`.
    public func requiredSecret(_ name: String) throws(AuthenticationError) -> Secret {
        guard let secret = try secret(name) else { throw missing(name) }
        return secret
    }

    /// An optional object; `nil` if absent or `null`.
    /// - Throws: `malformed` with `signin.bad_member` for another type.
    public func object(_ name: String) throws(AuthenticationError) -> JSONObject? {
        switch (texts[name], others[name]) {
        case (nil, nil), (nil, .null): return nil
        case (nil, .object(let object)): return object
        default:
            throw .malformed(.signInBadMember, BodyError(name, .unknownType, detail: "`\(name)` must be an object."))
        }
    }

    /// The error for a missing required member. The response names the member, and a similar name that was sent
    /// instead.
    public func missing(_ name: String) -> AuthenticationError {
        let names = [Array(texts.keys), Array(others.keys)].joined().filter { $0 != name }
        return .malformed(.signInMissingMember, BodyError(missing: name, among: names))
    }
}

extension ErrorCode {
    /// A required member is absent.
    public static let signInMissingMember: ErrorCode = "signin.missing_member"
    /// A member has the wrong type.
    public static let signInBadMember: ErrorCode = "signin.bad_member"
}

/// A provider whose users can change their password: `POST /auth/password`.
public protocol PasswordChanging: Provider {
    /// How many characters (code points) a new password has at least; 8 by default.
    var minimumPasswordLength: Int { get }
    /// Changes the password of a user who knows the current one.
    /// - Parameter subject: the provider's identifier of the user, as in its identities.
    /// - Throws: `rejected` for a wrong current password, `throttled` like a login, `notFound` without a record,
    ///   `malformed` for a new password that is too short or too long.
    func changePassword(
        of subject: String, from current: Secret, to new: Secret, in context: AuthenticationContext
    ) async throws(AuthenticationError)
}

extension PasswordChanging {
    public var minimumPasswordLength: Int { 8 }
}

/// A provider that stores data about a user and deletes it when the identity is unlinked.
public protocol Unlinking: Provider {
    /// Deletes the data of a subject. Idempotent.
    func unlink(_ subject: String) async throws(AuthenticationError)
}

/// The throttling of a user after too many failed attempts.
public struct UserThrottling: Sendable, Equatable {
    /// For how long attempts are rejected that come from networks unknown for the user; `nil` if they are not.
    public let remaining: Duration?
    /// The number of known networks whose attempts are rejected.
    public let knownNetworks: Int

    public init(remaining: Duration?, knownNetworks: Int) {
        self.remaining = remaining
        self.knownNetworks = knownNetworks
    }
}

/// A provider that throttles users after failed attempts, for `martlet user`: it can say whom, and end it.
public protocol UserUnlocking: Provider {
    /// Ends the bans of a user, and forgets the attempts.
    /// - Parameter name: the canonical name.
    /// - Throws: `unavailable` if the store that instances share is unavailable.
    func unlock(_ name: String) async throws(AuthenticationError)
    /// The throttling of a user; `nil` if no attempt is rejected.
    /// - Parameter subject: the provider's subject, which is the canonical name.
    /// - Throws: `unavailable` if the store that instances share is unavailable.
    func throttling(of subject: String) async throws(AuthenticationError) -> UserThrottling?
    /// How the provider's own log lines name a user; `nil` if none does.
    /// - Parameter subject: the provider's subject, which is the canonical name.
    func loggedName(of subject: String) -> String?
}

/// A provider whose users can be created on the command line: `martlet user`.
public protocol UserCreating: Provider {
    /// Whether its users are in the account store; otherwise no record can be created.
    var storesRecords: Bool { get }
    /// Creates the record of a user by the provider's rules for names and passwords; the caller stores it.
    /// - Throws: `malformed` for a name or a password that violates the rules, `notFound` if users are not in the
    ///   account store, `unavailable` if the hash could not be computed.
    func makeRecord(name: String, password: Secret) async throws(AuthenticationError) -> UserRecord
    /// The canonical form of a name, the key of records; `nil` for a name that no user can have.
    func canonicalName(_ name: String) -> String?
}
