internal import MartletCore

/// Which name of a client's certificate is its identity.
public enum ClientIdentityKind: String, Sendable, CaseIterable {
    /// The URI among the alternative names, such as that of a SPIFFE ID.
    case sanURI = "san_uri"
    /// The host name among the alternative names, in lower case.
    case sanDNS = "san_dns"
    /// The mail address among the alternative names.
    case sanEmail = "san_email"
    /// The common name of the subject.
    case subjectCN = "subject_cn"
    /// The whole subject as RFC 4514 text, such as `CN=build,OU=CI,O=Example`.
    case subjectDN = "subject_dn"
    /// The SHA-256 of the certificate in lower-case hexadecimal digits.
    case fingerprint = "fingerprint"

    /// The longest identity in bytes, as long as the subject of a token may be.
    static let maximumBytes = 255

    /// Checks a name and brings it into its one form.
    /// - Throws: one of the `certificate.identity_` codes.
    func identity(_ name: [UInt8]) throws(ClientCertificateError) -> String {
        guard let text = String(validating: name, as: UTF8.self), isUnicode || name.allSatisfy({ $0 < 0x80 }) else {
            throw ClientCertificateError(.certificateIdentityNotText, "the name is not text")
        }
        guard !CertificateText.hasControl(name) else {
            throw ClientCertificateError(.certificateIdentityControl, "the name has a control character")
        }
        guard name.count <= Self.maximumBytes else {
            throw ClientCertificateError(.certificateIdentityTooLong, "the name has \(name.count) bytes")
        }
        guard self != .sanDNS || !name.contains(UInt8(ascii: "*")) else {
            throw ClientCertificateError(.certificateIdentityWildcard, "the name is a wildcard")
        }
        guard isWellFormed(name) else {
            throw ClientCertificateError(.certificateIdentityMalformed, "the name is not one of its kind")
        }
        return self == .sanDNS ? text.lowercased() : text
    }

    private var isUnicode: Bool { self == .subjectCN }

    private func isWellFormed(_ name: [UInt8]) -> Bool {
        switch self {
        case .sanDNS: Self.isHost(name)
        case .sanURI: Self.isURI(name)
        case .sanEmail: Self.isAddress(name)
        case .subjectCN, .subjectDN, .fingerprint: !name.isEmpty
        }
    }

    /// Labels of letters, digits, dashes and underscores, separated by single dots.
    private static func isHost(_ name: [UInt8]) -> Bool {
        name.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false).allSatisfy { label in
            (1...63).contains(label.count) && label.allSatisfy { isAlphanumeric($0) || $0 == 0x2D || $0 == 0x5F }
        }
    }

    /// A scheme, a colon and at least one character, none of them a space (RFC 3986 §3).
    private static func isURI(_ name: [UInt8]) -> Bool {
        guard let colon = name.firstIndex(of: UInt8(ascii: ":")), colon + 1 < name.count, !name.contains(0x20),
            let first = name.first, isAlphanumeric(first), first > 0x39
        else { return false }
        return name[..<colon].allSatisfy { isAlphanumeric($0) || "+-.".utf8.contains($0) }
    }

    /// Something on both sides of one at sign, without spaces.
    private static func isAddress(_ name: [UInt8]) -> Bool {
        let parts = name.split(separator: UInt8(ascii: "@"), omittingEmptySubsequences: false)
        return parts.count == 2 && parts.allSatisfy { !$0.isEmpty } && !name.contains(0x20)
    }

    private static func isAlphanumeric(_ byte: UInt8) -> Bool {
        (0x30...0x39).contains(byte) || (0x61...0x7A).contains(byte | 0x20)
    }
}
