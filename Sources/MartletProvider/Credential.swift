public import MartletCore

/// Where a provider's credentials are found in a request.
@frozen public enum CredentialSource: Sendable, Hashable {
    /// `Authorization: Bearer` with a compact JWS whose `iss` is one of these.
    case bearerJWT(issuers: [String])
    /// `Authorization: Bearer` with an opaque token that has this prefix.
    case bearerPrefix(String)
    /// `Authorization: Basic`.
    case basic
    /// The value of the header with this name, such as `X-Api-Key`. It cannot be `Authorization`.
    ///
    /// The upstream does not get the header, unless the route has `forward_credentials`.
    case header(String)
    /// A signature of the request (RFC 9421): the value of `Signature-Input`. ``RequestSignature`` reads it, for a
    /// provider that ``RequestInspecting/readsHead``.
    ///
    /// The upstream gets neither `Signature-Input` nor `Signature`, unless the route has `forward_credentials`.
    case messageSignature
    /// The certificate with which the client authenticated in the TLS handshake, or that a trusted proxy names
    /// (RFC 9440); a request without any other credential.
    case clientCertificate
}

/// A client's credential: the value after the scheme in `Authorization`, that of another header or of the session
/// cookie, or a certificate.
///
/// Its memory is wiped with the last reference; it is printed as `<redacted>`.
public final class Credential: Sendable, CustomStringConvertible {
    /// The authentication scheme.
    @frozen public enum Scheme: Sendable {
        case bearer, basic
        /// A header of its own: see ``CredentialSource/header(_:)`` and ``CredentialSource/messageSignature``.
        case header
        /// A client certificate: see ``CredentialSource/clientCertificate``.
        case certificate
        /// The session cookie; no provider gets one.
        case cookie
    }

    public let scheme: Scheme
    private let secret: Secret

    /// Consumes the token's bytes.
    public init(bearer token: consuming [UInt8]) {
        scheme = .bearer
        secret = Secret(token)
    }

    /// Consumes the bytes after `Basic` (RFC 7617 §2), not decoded.
    public init(basic token: consuming [UInt8]) {
        scheme = .basic
        secret = Secret(token)
    }

    /// Consumes the value of a header of its own.
    public init(header value: consuming [UInt8]) {
        scheme = .header
        secret = Secret(value)
    }

    /// Consumes a client's certificate in DER.
    public init(certificate der: consuming [UInt8]) {
        scheme = .certificate
        secret = Secret(der)
    }

    /// Consumes the value of the session cookie.
    package init(cookie token: consuming [UInt8]) {
        scheme = .cookie
        secret = Secret(token)
    }

    /// Provides the token's bytes for the duration of a call; they must not be stored.
    public func withBytes<Result, Failure: Error>(_ body: ([UInt8]) throws(Failure) -> Result) throws(Failure) -> Result
    {
        try secret.withBytes(body)
    }

    public var description: String { "<redacted>" }
}

/// The request whose credential a provider verifies.
public struct AuthenticationContext: Sendable {
    /// The purpose of a credential.
    public enum Purpose: Sendable, Hashable {
        /// A request to a route, or another use of an existing credential.
        case request
        /// `POST /auth/login/{provider}`.
        case login
        /// `POST /auth/link/{provider}` by the caller of this session.
        case link(sessionID: String)
        /// Another proof of the caller of this session, such as `POST /auth/reauthenticate`.
        case reauthentication(sessionID: String)
    }

    /// The wall-clock time at which the credential arrived.
    public let now: UnixTime
    /// The instant after which a result is of no use.
    public let deadline: MonotonicTime
    /// The client's network, for throttles; `nil` for a Unix socket.
    public let client: ClientNetwork?
    /// The full address, 16 bytes (IPv4 mapped), for the list of a subject's sessions; empty if not needed.
    package let address: [UInt8]
    public let purpose: Purpose
    /// Who causes what is done for a client that is not known yet: its network.
    public var owner: WorkOwner { client?.workOwner ?? .anonymous }
    /// The request; `nil` for providers that are not ``RequestInspecting``, and where the credential is not that of a
    /// request to a route.
    public let request: RequestFacts?
    /// What names the request, of all requests of all instances: the same each time that the request is verified, as
    /// after a change of the configuration. Empty where ``request`` is `nil` in a call for a route.
    public let requestID: [UInt8]
    /// The certificates between the client's and its authority's, in DER, where the credential is a certificate that a
    /// trusted proxy names: `Client-Cert-Chain` (RFC 9440 §2.3).
    public let certificateChain: [[UInt8]]
    /// What ``approve(_:)`` asks; `nil` where everything is approved.
    package var approval: (@Sendable (SignIn) async throws(AuthenticationError) -> Void)?

    public init(
        now: UnixTime, deadline: MonotonicTime, client: ClientNetwork? = nil, purpose: Purpose = .request,
        request: RequestFacts? = nil, requestID: [UInt8] = [], certificateChain: [[UInt8]] = []
    ) {
        self.init(
            now: now, deadline: deadline, client: client, address: [], purpose: purpose, request: request,
            requestID: requestID, certificateChain: certificateChain)
    }

    package init(
        now: UnixTime, deadline: MonotonicTime, client: ClientNetwork?, address: [UInt8], purpose: Purpose = .request,
        request: RequestFacts? = nil, requestID: [UInt8] = [], certificateChain: [[UInt8]] = []
    ) {
        self.now = now
        self.deadline = deadline
        self.client = client
        self.address = address
        self.purpose = purpose
        self.request = request
        self.requestID = requestID
        self.certificateChain = certificateChain
    }

    /// Marks a proof that can be used once as used by this request.
    ///
    /// A request may be verified again, so its own mark is no other use.
    /// - Parameters:
    ///   - key: names the proof in the store.
    ///   - lifetime: for longer than any instance accepts the proof.
    /// - Returns: whether no other request has used it.
    /// - Throws: what the store throws; the use is not known then.
    public func marksUse(
        of key: String, in store: some KeyValueStoring, lifetime: Duration
    ) async throws(StoreError) -> Bool {
        let mark = requestID.isEmpty ? [1] : requestID
        if try await store.setIfAbsent(mark, for: key, lifetime: lifetime) { return true }
        guard !requestID.isEmpty else { return false }
        switch await store.value(for: key) {
        case .found(let other): return other == requestID
        case .miss: return false
        case .unavailable(let error): throw error
        }
    }

    /// Asks whether a login that is proved may go on: to be called before a proof that can be used once is consumed.
    ///
    /// An identity that cannot be linked, because it belongs to another account, leaves the proof for a login.
    /// - Parameter signIn: what the login results in, as far as it is known.
    /// - Throws: why it may not; to be passed on unchanged.
    public func approve(_ signIn: SignIn) async throws(AuthenticationError) { try await approval?(signIn) }

    /// The scope in which a repeated POST gets the same response: the client network for a login, the session for a
    /// link and for a reauthentication.
    ///
    /// A single-use credential belongs to the client that presented it first; a POST from elsewhere is not a
    /// repetition.
    ///
    /// - Returns: equal bytes for POSTs that may repeat each other; `nil` if this is unknown, as for a login from an
    ///   unknown network.
    public var repetitionScope: [UInt8]? {
        switch purpose {
        case .request: nil
        case .login: client.map { Array("login \($0)".utf8) }
        case .link(let sessionID): Array("link \(sessionID)".utf8)
        case .reauthentication(let sessionID): Array("reauthentication \(sessionID)".utf8)
        }
    }
}
