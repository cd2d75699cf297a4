public import MartletConfig
internal import MartletCore
internal import MartletCrypto
internal import MartletJSON
public import MartletProvider

/// Takes the client's certificate for its identity: that of the TLS handshake, or the one that a trusted proxy names.
public struct MTLSProvider: LocallyVerifying {
    /// The type of the provider's configuration block.
    public typealias Configuration = MTLSConfiguration

    public static let kind: ProviderKind = "mtls"

    private let kind: ClientIdentityKind
    private let trust: ClientTrust?
    private let issuer: String

    public init(_ configuration: Configuration, context: ProviderContext) throws(ConfigurationError) {
        kind = configuration.identity
        issuer = context.name
        guard let authorities = configuration.authorities else {
            trust = nil
            return
        }
        do throws(ClientCertificateError) { trust = try ClientTrust(pem: authorities.value) } catch {
            throw ConfigurationError(error.code, at: authorities.location, "ca_file: \(error.message)")
        }
    }

    public var accepts: [CredentialSource] { [.clientCertificate] }

    /// At most the signatures of one chain; the result is reused for the connection's other requests.
    public var isQuick: Bool { true }

    /// Names, dates and chain of the certificate.
    public func verify(
        _ credential: Credential, in context: AuthenticationContext
    ) throws(AuthenticationError) -> LocalVerification {
        .authenticated(try identity(of: credential, in: context))
    }

    /// The same: nothing has to be waited for.
    public func authenticate(
        _ credential: Credential, in context: AuthenticationContext
    ) async throws(AuthenticationError) -> Identity { try identity(of: credential, in: context) }

    private func identity(
        of credential: Credential, in context: AuthenticationContext
    ) throws(AuthenticationError) -> Identity {
        let now = context.now
        do throws(ClientCertificateError) {
            let certificate = try credential.withBytes { (der) throws(ClientCertificateError) in
                try ClientCertificate(der: der)
            }
            // A long connection may outlive it, and a proxy may not have looked.
            try certificate.checkDates(at: now)
            try trust?.verify(certificate, intermediates: context.certificateChain, at: now)
            return Identity(
                providerSubject: try certificate.identity(kind), issuer: issuer,
                claims: ["fingerprint": .string(certificate.fingerprint)], authTime: now, issuedAt: now,
                // The last second belongs to it.
                expiresAt: certificate.notAfter.advanced(bySeconds: 1))
        } catch {
            throw .rejected(ErrorCode(rawValue: "mtls.\(error.reason)"), cause: error)
        }
    }
}

extension MTLSProvider: Explaining {
    /// The certificate's names, dates and chain as one check.
    public func explain(_ credential: Credential, in context: AuthenticationContext) async -> [CheckOutcome] {
        do throws(AuthenticationError) {
            let identity = try identity(of: credential, in: context)
            return [CheckOutcome(check: "certificate", failure: nil, detail: "until \(identity.expiresAt)")]
        } catch {
            return [CheckOutcome(check: "certificate", failure: error.code, detail: "")]
        }
    }
}

extension ClientCertificateError {
    /// The code without the name of its module.
    fileprivate var reason: Substring { code.rawValue.drop { $0 != "." }.dropFirst() }
}
