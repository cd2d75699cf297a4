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
    /// The wall clock when the credential arrived.
    public let now: UnixTime
    /// When an answer is of no more use.
    public let deadline: MonotonicTime
    /// Where the request came from, for throttles; `nil` for a Unix socket.
    public let client: ClientNetwork?

    public init(now: UnixTime, deadline: MonotonicTime, client: ClientNetwork? = nil) {
        self.now = now
        self.deadline = deadline
        self.client = client
    }
}

/// The network that a client calls from, as throttles count it: an IPv4 address, or the /64 of an IPv6 one.
///
/// Where trusted proxies stand in front, it is the client's as they tell it.
public struct ClientNetwork: Hashable, Sendable, CustomStringConvertible {
    /// The first half of the address.
    private let high: UInt64
    /// The second half of a mapped IPv4 address; 0 for the network of an IPv6 one.
    private let low: UInt64

    /// - Parameter address: 16 bytes in network order, IPv4 mapped; `nil` if there are not 16.
    public init?(address: [UInt8]) {
        guard address.count == 16 else { return nil }
        high = address[..<8].reduce(0) { $0 << 8 | UInt64($1) }
        let rest = address[8...].reduce(0) { $0 << 8 | UInt64($1) }
        low = high == 0 && rest >> 32 == 0xFFFF ? rest : 0
    }

    public var description: String {
        guard low == 0 else {
            return stride(from: 24, through: 0, by: -8).map { String(UInt8(truncatingIfNeeded: low >> $0)) }
                .joined(separator: ".")
        }
        return stride(from: 48, through: 0, by: -16).map { String(UInt16(truncatingIfNeeded: high >> $0), radix: 16) }
            .joined(separator: ":") + "::/64"
    }
}
