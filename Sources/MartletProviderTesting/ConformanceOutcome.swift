internal import MartletCore
internal import MartletJSON
internal import MartletProvider

/// The outcome of a call.
enum ConformanceOutcome: Sendable, CustomStringConvertible {
    case identity(Identity)
    case error(AuthenticationError)
    case hanging

    var error: AuthenticationError? {
        guard case .error(let error) = self else { return nil }
        return error
    }

    var subject: String? {
        guard case .identity(let identity) = self else { return nil }
        return identity.providerSubject
    }

    var hangs: Bool {
        guard case .hanging = self else { return false }
        return true
    }

    var description: String {
        switch self {
        case .identity(let identity): "the identity \(ConformanceText.shown(Array(identity.providerSubject.utf8)))"
        case .error(let error): "\(error.code) (\(error.disposition))"
        case .hanging: "nothing: it does not return"
        }
    }
}

/// What the gateway relies on in an identity.
enum IdentityRules {
    /// - Parameter now: `nil` for a login, whose expiry does not count.
    static func violations(of identity: Identity, at now: UnixTime?) -> [String] {
        var reasons: [String] = []
        let subject = identity.providerSubject
        if !(1...255).contains(subject.utf8.count) { reasons.append("the subject has \(subject.utf8.count) bytes") }
        if subject.unicodeScalars.contains(where: { $0.properties.generalCategory == .control }) {
            reasons.append("the subject has a control character")
        }
        if identity.issuer.isEmpty { reasons.append("there is no issuer") }
        if let now, identity.expiresAt <= now { reasons.append("the identity has expired") }
        if identity.reusableUntil > identity.expiresAt { reasons.append("it is reusable after it has expired") }
        if let now, identity.issuedAt > now.advanced(bySeconds: 300) { reasons.append("it was issued in the future") }
        return reasons
    }
}

/// Bytes as a report shows them.
enum ConformanceText {
    /// At most forty, those that are not printable as a dot.
    static func shown(_ bytes: [UInt8]) -> String {
        let text = bytes.prefix(40).map { (0x20...0x7E).contains($0) ? $0 : UInt8(ascii: ".") }
        return "'\(String(decoding: text, as: UTF8.self))\(bytes.count > 40 ? "…" : "")' (\(bytes.count) bytes)"
    }
}

extension Credential {
    /// Whether an error's text has the credential in it.
    func isRevealed(by error: AuthenticationError) -> Bool {
        let secret = withBytes { String(validating: $0, as: UTF8.self) }
        guard let secret, secret.utf8.count >= 8 else { return false }
        let details = error.bodyErrors.map(\.detail).joined(separator: " ")
        return "\(error) \(error.cause.map { "\($0)" } ?? "") \(details)".contains(secret)
    }
}

extension Credential.Scheme {
    func credential(_ bytes: [UInt8]) -> Credential {
        switch self {
        case .bearer, .cookie: Credential(bearer: bytes)
        case .basic: Credential(basic: bytes)
        case .header: Credential(header: bytes)
        case .certificate: Credential(certificate: bytes)
        }
    }
}

extension CredentialSource {
    func credential(_ bytes: [UInt8]) -> Credential {
        switch self {
        case .bearerJWT, .bearerPrefix: Credential(bearer: bytes)
        case .basic: Credential(basic: bytes)
        case .header, .messageSignature: Credential(header: bytes)
        case .clientCertificate: Credential(certificate: bytes)
        }
    }
}
