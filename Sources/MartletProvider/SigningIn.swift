public import MartletCore
public import MartletJSON

/// A provider whose proof comes in a body: `POST /auth/login/{provider}` and `POST /auth/link/{provider}`.
public protocol SigningIn: Provider {
    /// Proves who sends the form; may wait, but never block a thread.
    ///
    /// A proof that works once is used up by this call, whatever comes of it.
    /// - Throws: `AuthenticationError` of any disposition.
    func signIn(with form: SignInForm, in context: AuthenticationContext) async throws(AuthenticationError) -> SignIn

    /// How many of its logins may fail (401, 403) from one network before more are refused (429) without asking it.
    var failureLimit: FailureLimit { get }
}

extension SigningIn {
    /// ``FailureLimit/standard``.
    public var failureLimit: FailureLimit { .standard }
}

/// How often something may fail from one IPv4 address, or one IPv6 /64.
///
/// A failure counts less and less, and not at all once the window is over. A /24 and a /56 may have 4 times as many,
/// a /48 and everybody whose address is not known 16 times.
public struct FailureLimit: Sendable, Hashable {
    public let attempts: Int
    public let window: Duration

    /// - Parameters:
    ///   - attempts: at least 1.
    ///   - window: in which so many may fail, and then that many again.
    public init(attempts: Int, window: Duration) {
        self.attempts = max(attempts, 1)
        self.window = window
    }

    /// 600 in two minutes.
    public static let standard = FailureLimit(attempts: 600, window: .seconds(120))
}

/// What a provider proved at a login.
public struct SignIn: Sendable {
    /// Says that the same post may come again, and is to get the very same answer then.
    ///
    /// The answer is kept for 30 s; for how long a repeated post is proved again is the provider's to decide, up to 20 s.
    public struct Repetition: Sendable {
        /// The same for equal posts alone; says nothing to who reads it.
        public let name: String
        /// 32 bytes that only who sends the post can make: what the answer is sealed under.
        public let key: Secret

        public init(name: String, key: Secret) {
            self.name = name
            self.key = key
        }
    }

    /// The identity; its `expiresAt` is of no meaning here, because a session has its own end.
    public let identity: Identity
    /// Other subjects by which the same provider has known, or may know, the same person.
    ///
    /// The account store binds them all to one account: a person first seen under one of them is found again.
    public let aliases: [String]
    /// Claims that come once and are kept with the account from the first login on, such as `name`.
    public let keptClaims: JSONObject
    /// `nil` where each post is a login of its own.
    public let repetition: Repetition?

    public init(
        identity: Identity, aliases: [String] = [], keptClaims: JSONObject = [:], repetition: Repetition? = nil
    ) {
        self.identity = identity
        self.aliases = aliases
        self.keptClaims = keptClaims
        self.repetition = repetition
    }
}

/// The members of a login's body, JSON or form: strict, each at most once, unknown ones ignored.
public struct SignInForm: Sendable {
    private let texts: [String: Secret]
    private let others: [String: JSONValue]
    /// Whether it came as `application/x-www-form-urlencoded`, where every member is a text.
    public let isForm: Bool

    /// - Parameters:
    ///   - texts: the members that are texts, as UTF-8.
    ///   - others: the members of other types.
    public init(texts: [String: Secret], others: [String: JSONValue], isForm: Bool) {
        self.texts = texts
        self.others = others
        self.isForm = isForm
    }

    /// A text that is no secret; `nil` if it is not there (or `null`).
    /// - Throws: `malformed` with `signin.bad_member` for another type.
    public func text(_ name: String) throws(AuthenticationError) -> String? {
        try secret(name).map { $0.withBytes { String(decoding: $0, as: UTF8.self) } }
    }

    /// A text that must be there.
    /// - Throws: `malformed` with `signin.missing_member` or `signin.bad_member`.
    public func requiredText(_ name: String) throws(AuthenticationError) -> String {
        guard let text = try text(name) else { throw missing(name) }
        return text
    }

    /// A secret such as a password, a code or a token; `nil` if it is not there.
    public func secret(_ name: String) throws(AuthenticationError) -> Secret? {
        if let text = texts[name] { return text }
        switch others[name] {
        case nil, .null: return nil
        default: throw .malformed(.signInBadMember, BodyError(name, .unknownType, detail: "`\(name)` must be text."))
        }
    }

    /// A secret that must be there.
    public func requiredSecret(_ name: String) throws(AuthenticationError) -> Secret {
        guard let secret = try secret(name) else { throw missing(name) }
        return secret
    }

    /// An object; `nil` if it is not there.
    public func object(_ name: String) throws(AuthenticationError) -> JSONObject? {
        switch (texts[name], others[name]) {
        case (nil, nil), (nil, .null): return nil
        case (nil, .object(let object)): return object
        default:
            throw .malformed(.signInBadMember, BodyError(name, .unknownType, detail: "`\(name)` must be an object."))
        }
    }

    /// What a provider throws when a member must be there and is not: the response names the member, and one that was
    /// sent instead of it by mistake.
    public func missing(_ name: String) -> AuthenticationError {
        let names = [Array(texts.keys), Array(others.keys)].joined().filter { $0 != name }
        return .malformed(.signInMissingMember, BodyError(missing: name, among: names))
    }
}

extension ErrorCode {
    /// A member that must be there is not.
    public static let signInMissingMember: ErrorCode = "signin.missing_member"
    /// A member is of another type than it must be.
    public static let signInBadMember: ErrorCode = "signin.bad_member"
}

/// A provider whose users have a password that they can change: `POST /auth/password`.
public protocol PasswordChanging: Provider {
    /// Changes the password of a user who knows the current one.
    /// - Parameter subject: the provider's own name for the user, as its identities have it.
    /// - Throws: `rejected` for a wrong current password, `throttled` as a login, `notFound` without a record,
    ///   `malformed` for a new password that is too short or too long.
    func changePassword(
        of subject: String, from current: Secret, to new: Secret, in context: AuthenticationContext
    ) async throws(AuthenticationError)
}

/// A provider that keeps something of its own about a person and gives it up when the identity is unlinked.
public protocol Unlinking: Provider {
    /// Forgets what it keeps about a subject; nothing to forget is no error.
    func unlink(_ subject: String) async throws(AuthenticationError)
}

/// A provider whose users can be made at the command line: `martlet user`.
public protocol UserMaking: Provider {
    /// Whether its users are in the account store; where they are not, no record can be made for it.
    var keepsRecords: Bool { get }
    /// Makes the record of a user by the provider's rules for names and passwords; storing it is the caller's part.
    /// - Throws: `malformed` for a name or a password that the rules refuse, `notFound` where users are not kept in the
    ///   account store, `unavailable` when the hash could not be computed.
    func makeRecord(name: String, password: Secret) async throws(AuthenticationError) -> UserRecord
    /// The form of a name that records are filed under; `nil` for a name that no user can have.
    func canonicalName(_ name: String) -> String?
}
