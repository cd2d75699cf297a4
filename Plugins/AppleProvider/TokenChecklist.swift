internal import MartletConfig
internal import MartletCore
internal import MartletJOSE
internal import MartletProvider

/// What a verified identity token says.
struct VerifiedToken {
    let identity: Identity
    let audience: String
    /// All claims, including those that only serve to verify the token, such as `nonce`.
    let claims: AppleClaims
}

/// The list of checks that an identity token must pass: those of every signed token, then Apple's own.
///
/// Requests, logins and `martlet explain` all run it.
struct TokenChecklist {
    /// The longest lifetime of a token; Apple's tokens have 24 hours.
    private static let maximumLifetime = Duration.seconds(48 * 3600)

    /// The longest token in bytes; Apple's have about 1 KiB.
    private static let maximumTokenBytes = 8 * 1024

    private let checks: TokenChecks

    /// - Parameters:
    ///   - maximumAge: how long after `iat` a token is accepted.
    ///   - headers: the parsed headers of Apple's tokens.
    ///   - furtherAudiences: accepted beside the configured ones.
    init(
        configuration: AppleConfiguration, maximumAge: Duration, headers: JWSHeaderCache,
        furtherAudiences: [String] = []
    ) {
        var checks = TokenChecks(
            prefix: AppleProvider.kind.rawValue, owner: "Apple's", algorithms: configuration.algorithms,
            issuers: configuration.issuers.map(\.value),
            audiences: configuration.audiences.map(\.value) + furtherAudiences,
            maximumAge: maximumAge, headers: headers)
        checks.leeway = configuration.leeway
        checks.maximumLifetime = Self.maximumLifetime
        // Apple's documents name each field that its tokens have.
        checks.isStrict = true
        checks.maximumTokenBytes = Self.maximumTokenBytes
        self.checks = checks
    }

    /// Runs the checks up to the first that fails.
    ///
    /// - Parameter lookup: finds a key: among the cached ones, or the result of a fetch.
    func run(
        _ token: [UInt8], at now: UnixTime, log: inout CheckLog, lookup: (KeyID) -> IssuerKeys.Lookup
    ) throws(AppleError) -> VerifiedToken {
        let checked = try AppleError.fromToken(
            try checks.check(token, at: now, log: &log) { $0.map(lookup) ?? .unknown })
        let subject = try AppleError.fromToken(try checks.subject(of: checked.claims, log: &log))
        let claims = AppleClaims(checked.claims.payload)
        try log.check("token kind") { () throws(AppleError) in try claims.rejectEvents() }
        let values = try log.check("claims") { () throws(AppleError) in try claims.normalized() }
        let times = checked.times
        let identity = Identity(
            providerSubject: subject, issuer: checked.issuer, claims: values,
            authTime: times.authTime ?? times.issuedAt, issuedAt: times.issuedAt, expiresAt: times.end)
        return VerifiedToken(identity: identity, audience: checked.audience, claims: claims)
    }

    /// Runs the checks of a notification: the same up to its times, but it must have events and needs no subject.
    func runNotification(
        _ token: [UInt8], at now: UnixTime, lookup: (KeyID) -> IssuerKeys.Lookup
    ) throws(AppleError) -> AppleClaims {
        var log = CheckLog(recorded: false)
        let checked = try AppleError.fromToken(
            try checks.check(token, at: now, log: &log) { $0.map(lookup) ?? .unknown })
        return AppleClaims(checked.claims.payload)
    }
}
