public import MartletCore

/// Why a client's certificate is rejected, or gives no identity.
public struct ClientCertificateError: CodedError, Equatable {
    public let code: ErrorCode
    /// For operators; holds no name of the certificate.
    public let message: String

    init(_ code: ErrorCode, _ message: String) {
        self.code = code
        self.message = message
    }

    /// Errors are equal if their codes are.
    public static func == (left: ClientCertificateError, right: ClientCertificateError) -> Bool {
        left.code == right.code
    }
}

extension ErrorCode {
    /// The certificate exceeds the maximum size.
    public static let certificateTooLarge: ErrorCode = "certificate.too_large"
    /// The bytes are not exactly one certificate in DER.
    public static let certificateMalformed: ErrorCode = "certificate.malformed"
    /// A file of authorities has no certificate.
    public static let certificateAuthorityMissing: ErrorCode = "certificate.ca_empty"
    /// A file of authorities has something that is no certificate.
    public static let certificateAuthorityInvalid: ErrorCode = "certificate.ca_invalid"
    /// The certificate's validity has not begun.
    public static let certificateNotYetValid: ErrorCode = "certificate.not_yet_valid"
    /// The certificate's validity has ended.
    public static let certificateExpired: ErrorCode = "certificate.expired"
    /// The certificate may not be used by clients.
    public static let certificateWrongPurpose: ErrorCode = "certificate.wrong_purpose"
    /// No chain leads from the certificate to a trusted authority.
    public static let certificateUntrusted: ErrorCode = "certificate.untrusted"

    /// The certificate has no name of the configured kind.
    public static let certificateIdentityMissing: ErrorCode = "certificate.identity_missing"
    /// The certificate has several names of the configured kind.
    public static let certificateIdentityAmbiguous: ErrorCode = "certificate.identity_ambiguous"
    /// The name is empty, or not one of its kind.
    public static let certificateIdentityMalformed: ErrorCode = "certificate.identity_malformed"
    /// The name is not text in UTF-8, or in ASCII where its kind requires that.
    public static let certificateIdentityNotText: ErrorCode = "certificate.identity_not_text"
    /// The name has a control character, such as NUL.
    public static let certificateIdentityControl: ErrorCode = "certificate.identity_control_character"
    /// The name has more than 255 bytes.
    public static let certificateIdentityTooLong: ErrorCode = "certificate.identity_too_long"
    /// The name is a wildcard, which names no one client.
    public static let certificateIdentityWildcard: ErrorCode = "certificate.identity_wildcard"
}
