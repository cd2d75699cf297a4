private import COpenSSL
public import MartletCore

/// The certificate with which a client authenticated: its names, dates and fingerprint. Whether it is trusted is not
/// part of it.
public struct ClientCertificate: Sendable {
    /// The maximum size in bytes; real ones have about 1 KiB.
    public static let maximumBytes = 16 * 1024

    /// As it was sent.
    public let der: [UInt8]
    public let notBefore: UnixTime
    public let notAfter: UnixTime
    private let digest: [UInt8]
    private let names: ClientCertificateNames

    /// - Throws: `certificate.too_large` or `certificate.malformed`.
    public init(der: [UInt8]) throws(ClientCertificateError) {
        let certificate = try ParsedCertificate(der: der)
        names = try ClientCertificateNames(certificate)
        (notBefore, notAfter) = unsafe (
            CertificateTime.unixTime(X509_get0_notBefore(certificate.pointer)),
            CertificateTime.unixTime(X509_get0_notAfter(certificate.pointer))
        )
        var digest = [UInt8](repeating: 0, count: 32)
        guard notBefore.seconds != .min, notAfter.seconds != .min,
            unsafe EVP_Digest(der, der.count, &digest, nil, EVP_sha256(), nil) == 1
        else {
            ERR_clear_error()
            throw ClientCertificateError(.certificateMalformed, "the certificate has no valid dates")
        }
        self.der = der
        self.digest = digest
    }

    /// The SHA-256 of the certificate in lower-case hexadecimal digits.
    public var fingerprint: String {
        let digits = Array("0123456789abcdef".utf8)
        return String(decoding: digest.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
    }

    /// The same in base64url, as `cnf` has it in tokens that are bound to the certificate (RFC 8705 §3.1).
    public var thumbprint: String { Base64URL.encode(digest) }

    /// Rejects a certificate outside its validity, of which both ends are part (RFC 5280 §4.1.2.5).
    /// - Throws: `certificate.not_yet_valid` or `certificate.expired`.
    public func checkDates(at now: UnixTime) throws(ClientCertificateError) {
        guard notBefore <= now else {
            throw ClientCertificateError(.certificateNotYetValid, "the certificate is not yet valid")
        }
        guard now <= notAfter else { throw ClientCertificateError(.certificateExpired, "the certificate has expired") }
    }

    /// The identity of the client.
    ///
    /// There must be exactly one name of the kind: of several, the authority did not say which one is the client's.
    /// - Throws: one of the `certificate.identity_` codes.
    public func identity(_ kind: ClientIdentityKind) throws(ClientCertificateError) -> String {
        switch kind {
        case .fingerprint: return fingerprint
        case .subjectDN: return try subject()
        case .subjectCN: return try kind.identity(try only(names.commonNames))
        case .sanDNS: return try kind.identity(try only(names.hosts))
        case .sanURI: return try kind.identity(try only(names.uris))
        case .sanEmail: return try kind.identity(try only(names.addresses))
        }
    }

    private func only(_ names: [[UInt8]?]) throws(ClientCertificateError) -> [UInt8] {
        guard let first = names.first else {
            throw ClientCertificateError(.certificateIdentityMissing, "the certificate has no such name")
        }
        guard names.count == 1 else {
            throw ClientCertificateError(.certificateIdentityAmbiguous, "the certificate has \(names.count) such names")
        }
        guard let first else { throw ClientCertificateError(.certificateIdentityNotText, "the name is not text") }
        return first
    }

    private func subject() throws(ClientCertificateError) -> String {
        guard let subject = names.subject else {
            throw ClientCertificateError(.certificateIdentityNotText, "the subject is not text")
        }
        guard !subject.isEmpty else {
            throw ClientCertificateError(.certificateIdentityMissing, "the certificate has no subject")
        }
        guard !names.subjectHasControl else {
            throw ClientCertificateError(.certificateIdentityControl, "the subject has a control character")
        }
        return try ClientIdentityKind.subjectDN.identity(subject)
    }
}
