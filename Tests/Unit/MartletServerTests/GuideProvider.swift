public import MartletConfig
internal import MartletCore
private import MartletJOSE
private import MartletJSON
public import MartletProvider

/// A partner's customers: `Authorization: Bearer` with a JWT that the partner has signed.
public struct PartnerProvider: LocallyVerifying {
    public struct Configuration: ConfigurationDecodable {
        let issuer: String
        let audiences: NonEmpty<String>
        let keysURL: Located<URLText>
        let maximumAge: Duration

        public init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
            maximumAge = reader.optional("max_age", default: .seconds(3600), in: .seconds(1) ... .seconds(86_400))
            issuer = try reader.required("issuer")
            audiences = try reader.required("audiences")
            keysURL = try reader.required("keys_url")
        }
    }

    public static let kind: ProviderKind = "partner"
    private let configuration: Configuration
    private let keys: IssuerKeys

    public static func validate(_ configuration: Configuration, into diagnostics: inout Diagnostics) {
        guard !configuration.keysURL.value.isTrustworthy else { return }
        diagnostics.error(
            .configBadURL, at: configuration.keysURL.location,
            "keys_url: must be https, unless the host is a loopback address")
    }

    public init(_ configuration: Configuration, context: ProviderContext) throws(ConfigurationError) {
        self.configuration = configuration
        keys = context.issuerKeys(at: configuration.keysURL.value.text, allowing: [.rs256])
    }

    public var accepts: [CredentialSource] { [.bearerJWT(issuers: [configuration.issuer])] }

    /// One signature and a little JSON: an event loop need not be spared.
    public var isQuick: Bool { true }

    /// Decides with the keys in memory, or leaves it to `authenticate`.
    public func verify(
        _ credential: Credential, in context: AuthenticationContext
    ) throws(AuthenticationError) -> LocalVerification {
        let (token, id) = try read(credential)
        let key = keys.lookup(id)
        if case .undecided = key { return .undecided }
        return .authenticated(try check(token, by: key, at: context.now))
    }

    /// The same after a fetch, if one is allowed and may bring the key.
    public func authenticate(
        _ credential: Credential, in context: AuthenticationContext
    ) async throws(AuthenticationError) -> Identity {
        let (token, id) = try read(credential)
        return try check(token, by: await keys.resolve(id), at: context.now)
    }

    /// Takes the token apart; nothing that it says is believed yet.
    private func read(_ credential: Credential) throws(AuthenticationError) -> (token: CompactJWS, id: KeyID) {
        do throws(JOSEError) {
            let token = try credential.withBytes { (bytes) throws(JOSEError) in try CompactJWS(bytes) }
            _ = try token.algorithm(among: [.rs256])
            try token.checkHeaderFields()
            return (token, try token.keyID())
        } catch {
            throw .rejected(ErrorCode(rawValue: "partner.\(error.reason)"), cause: error)
        }
    }

    private func check(
        _ token: CompactJWS, by key: IssuerKeys.Lookup, at now: UnixTime
    ) throws(AuthenticationError) -> Identity {
        switch key {
        case .key(let key):
            guard key.verify(signature: token.signature, signingInput: token.signingInput) else {
                throw .rejected("partner.bad_signature")
            }
        case .unusable: throw .rejected("partner.key_unusable")
        case .unknown: throw .rejected("partner.unknown_key")
        case .undecided, .unavailable: throw .unavailable("partner.keys_unavailable")
        }
        return try identity(token.payload, at: now)
    }

    /// The claims, now that the signature holds: each has to be there and to be right.
    private func identity(_ claims: JSONObject, at now: UnixTime) throws(AuthenticationError) -> Identity {
        guard let issuer = claims["iss"]?.string, issuer.hasSameBytes(as: configuration.issuer) else {
            throw .rejected("partner.bad_issuer")
        }
        guard let audience = claims["aud"]?.string, configuration.audiences.contains(where: audience.hasSameBytes)
        else { throw .rejected("partner.bad_audience") }
        guard let issuedAt = claims["iat"]?.int64.map({ UnixTime(seconds: $0) }),
            let expiry = claims["exp"]?.int64.map({ UnixTime(seconds: $0) }), issuedAt <= now.advanced(bySeconds: 60)
        else { throw .rejected("partner.bad_times") }
        let end = min(expiry, issuedAt.advanced(bySeconds: configuration.maximumAge.wholeSeconds))
        guard now < end else { throw .rejected("partner.expired") }
        guard let subject = claims["sub"]?.string, (1...255).contains(subject.utf8.count) else {
            throw .rejected("partner.bad_subject")
        }
        return Identity(
            providerSubject: subject, issuer: issuer, claims: claims, authTime: issuedAt, issuedAt: issuedAt,
            expiresAt: end)
    }
}

extension PartnerProvider: Running {
    public func start() async { await keys.start() }
    public func shutdown() async { await keys.stop() }
}

extension PartnerProvider: Reporting {
    public var health: ProviderHealth {
        let status = keys.status
        return ProviderHealth(
            state: status.source == .none ? .unavailable : status.isStale ? .degraded : .ready,
            detail: "\(status.keyIDs.count) keys",
            gauges: [
                .init(
                    name: "jwks_keys", help: "Keys of the issuer in use.", kind: .gauge,
                    value: Double(status.keyIDs.count))
            ])
    }
}

extension PartnerProvider: Explaining {
    public func explain(_ credential: Credential, in context: AuthenticationContext) async -> [CheckOutcome] {
        do throws(AuthenticationError) {
            let identity = try await authenticate(credential, in: context)
            return [CheckOutcome(check: "token", failure: nil, detail: "good until \(identity.expiresAt)")]
        } catch {
            return [CheckOutcome(check: "token", failure: error.code, detail: "")]
        }
    }
}
