public import MartletCore

/// Where a provider's credentials are found in a request.
public enum CredentialSource: Sendable, Hashable {
    /// `Authorization: Bearer` with a compact JWS whose `iss` is one of these.
    case bearerJWT(issuers: [String])
    /// `Authorization: Bearer` with an opaque token that begins so.
    case bearerPrefix(String)
}

/// What a client presents to prove who it is: the token without its scheme.
///
/// Wiped with its last owner, printed as `<redacted>`.
public final class Credential: Sendable, CustomStringConvertible {
    private let secret: Secret

    /// Takes over the token's bytes.
    public init(bearer token: consuming [UInt8]) { secret = Secret(token) }

    /// Lends the token's bytes for the length of a call; they must not be kept.
    public func withBytes<Result, Failure: Error>(_ body: ([UInt8]) throws(Failure) -> Result) throws(Failure) -> Result
    {
        try secret.withBytes(body)
    }

    public var description: String { "<redacted>" }
}

/// What a provider is told about the request whose credential it judges.
public struct AuthenticationContext: Sendable {
    /// The wall clock when the credential arrived.
    public let now: UnixTime
    /// When an answer is of no more use.
    public let deadline: MonotonicTime

    public init(now: UnixTime, deadline: MonotonicTime) {
        self.now = now
        self.deadline = deadline
    }
}
