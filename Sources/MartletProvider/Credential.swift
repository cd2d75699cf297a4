public import MartletCore

/// Where a provider's credentials are found in a request.
public enum CredentialSource: Sendable, Hashable {
    /// `Authorization: Bearer` with a compact JWS whose `iss` is one of these.
    case bearerJWT(issuers: [String])
    /// `Authorization: Bearer` with an opaque token that begins so.
    case bearerPrefix(String)
    /// `Authorization: Basic`.
    case basic
}

/// What a client presents to prove who it is: what follows the scheme in `Authorization`.
///
/// Wiped with its last owner, printed as `<redacted>`.
public final class Credential: Sendable, CustomStringConvertible {
    /// How it was presented.
    public enum Scheme: Sendable { case bearer, basic }

    public let scheme: Scheme
    private let secret: Secret

    /// Takes over the token's bytes.
    public init(bearer token: consuming [UInt8]) {
        scheme = .bearer
        secret = Secret(token)
    }

    /// Takes over the bytes behind `Basic` (RFC 7617 §2), not decoded.
    public init(basic token: consuming [UInt8]) {
        scheme = .basic
        secret = Secret(token)
    }

    /// Lends the token's bytes for the length of a call; they must not be kept.
    public func withBytes<Result, Failure: Error>(_ body: ([UInt8]) throws(Failure) -> Result) throws(Failure) -> Result
    {
        try secret.withBytes(body)
    }

    public var description: String { "<redacted>" }
}

/// What a provider is told about the request whose credential it judges.
public struct AuthenticationContext: Sendable {
    /// What a credential or a proof is presented for.
    public enum Purpose: Sendable, Hashable {
        /// A request to a route, or another use of what was proved before.
        case request
        /// `POST /auth/login/{provider}`.
        case login
        /// `POST /auth/link/{provider}` by the caller of this session.
        case link(sessionID: String)
    }

    /// The wall clock when the credential arrived.
    public let now: UnixTime
    /// When an answer is of no more use.
    public let deadline: MonotonicTime
    /// Where the request came from, for throttles; `nil` for a Unix socket.
    public let client: ClientNetwork?
    /// The same address in full, 16 bytes (IPv4 mapped), for the list of a subject's sessions; empty where nobody asks.
    package let address: [UInt8]
    public let purpose: Purpose

    public init(
        now: UnixTime, deadline: MonotonicTime, client: ClientNetwork? = nil, purpose: Purpose = .request
    ) {
        self.init(now: now, deadline: deadline, client: client, address: [], purpose: purpose)
    }

    package init(
        now: UnixTime, deadline: MonotonicTime, client: ClientNetwork?, address: [UInt8], purpose: Purpose = .request
    ) {
        self.now = now
        self.deadline = deadline
        self.client = client
        self.address = address
        self.purpose = purpose
    }

    /// Who may repeat a post and get its answer once more: the same client network at a login, the same session at a link.
    ///
    /// A proof that works once belongs to whoever presented it first; a post from elsewhere is not a repetition of it.
    ///
    /// - Returns: equal bytes for posts that may be each other's repetition; `nil` where nobody can tell, as at a login from
    ///   a network that is not known.
    public var repetitionScope: [UInt8]? {
        switch purpose {
        case .request: nil
        case .login: client.map { Array("login \($0)".utf8) }
        case .link(let sessionID): Array("link \(sessionID)".utf8)
        }
    }
}
