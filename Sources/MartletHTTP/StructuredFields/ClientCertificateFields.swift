package import MartletCore

/// The fields with which a proxy that terminates TLS passes on a client's certificate (RFC 9440), decoded to DER.
///
/// What is in them counts only if it comes from a trusted proxy.
package enum ClientCertificateFields {
    /// The maximum size of a certificate in bytes.
    package static let maximumBytes = 16 * 1024
    /// The maximum certificates in `Client-Cert-Chain`.
    package static let maximumChain = 8

    /// Decodes `Client-Cert` (RFC 9440 §2.2): one byte sequence without parameters.
    /// - Throws: `client_cert.malformed`, also for several lines joined with commas, or `client_cert.too_large`.
    package static func certificate(_ value: [UInt8]) throws(ClientCertificateFieldError) -> [UInt8] {
        let item: StructuredItem
        do throws(StructuredFieldError) { item = try StructuredField.item(value) } catch {
            throw Self.error(error, "Client-Cert")
        }
        return try certificate(in: item)
    }

    /// Decodes `Client-Cert-Chain` (RFC 9440 §2.3), all its lines joined with commas: the certificates between the
    /// client's and the authority's.
    /// - Throws: as above; `client_cert.too_large` also for more than 8 certificates.
    package static func chain(_ value: [UInt8]) throws(ClientCertificateFieldError) -> [[UInt8]] {
        let members: [StructuredMember]
        do throws(StructuredFieldError) { members = try StructuredField.list(value) } catch {
            throw Self.error(error, "Client-Cert-Chain")
        }
        guard members.count <= maximumChain else {
            throw ClientCertificateFieldError(
                code: .clientCertificateFieldTooLarge, message: "Client-Cert-Chain has \(members.count) certificates")
        }
        var chain: [[UInt8]] = []
        for member in members { chain.append(try certificate(in: member.item)) }
        return chain
    }

    private static func certificate(in item: StructuredItem?) throws(ClientCertificateFieldError) -> [UInt8] {
        guard let item, let bytes = item.value.bytes, !bytes.isEmpty, item.parameters.isEmpty else {
            throw ClientCertificateFieldError(
                code: .clientCertificateFieldMalformed, message: "a certificate is not a byte sequence")
        }
        guard bytes.count <= maximumBytes else {
            throw ClientCertificateFieldError(
                code: .clientCertificateFieldTooLarge, message: "a certificate has \(bytes.count) bytes")
        }
        return bytes
    }

    private static func error(_ error: StructuredFieldError, _ name: String) -> ClientCertificateFieldError {
        let isTooLarge = error.code == .structuredFieldTooLarge || error.code == .structuredFieldTooMany
        return ClientCertificateFieldError(
            code: isTooLarge ? .clientCertificateFieldTooLarge : .clientCertificateFieldMalformed,
            message: "\(name): \(error.message)")
    }
}

/// Why a field with a client's certificate is rejected.
package struct ClientCertificateFieldError: CodedError {
    package let code: ErrorCode
    /// For operators; holds no part of the field.
    package let message: String
}

extension ErrorCode {
    /// The field is not one byte sequence, or a list of them, without parameters.
    package static let clientCertificateFieldMalformed: ErrorCode = "client_cert.malformed"
    /// A certificate is too large, or the chain too long.
    package static let clientCertificateFieldTooLarge: ErrorCode = "client_cert.too_large"
}
