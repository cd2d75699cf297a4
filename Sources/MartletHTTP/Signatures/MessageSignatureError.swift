package import MartletCore

/// Why the signature of a request is rejected before or without verifying it (RFC 9421).
package struct MessageSignatureError: CodedError, Equatable {
    package let code: ErrorCode
    /// For operators; holds no part of the request.
    package let message: String

    init(_ code: ErrorCode, _ message: String) {
        self.code = code
        self.message = message
    }

    /// Errors are equal if their codes are.
    package static func == (left: MessageSignatureError, right: MessageSignatureError) -> Bool {
        left.code == right.code
    }
}

extension ErrorCode {
    /// `Signature-Input` or `Signature` is not a dictionary of inner lists or byte sequences.
    package static let signatureMalformed: ErrorCode = "signature.malformed"
    /// There are too many covered components, parameters or labels.
    package static let signatureTooMany: ErrorCode = "signature.too_many"
    /// There is no signature.
    package static let signatureMissing: ErrorCode = "signature.missing"
    /// There are several signatures.
    package static let signatureRepeated: ErrorCode = "signature.repeated"
    /// `Signature-Input` and `Signature` have different labels.
    package static let signatureLabelMismatch: ErrorCode = "signature.label_mismatch"
    /// A covered component is not a name in lower case, or has a malformed parameter.
    package static let signatureBadComponent: ErrorCode = "signature.bad_component"
    /// A derived component is unknown.
    package static let signatureUnknownComponent: ErrorCode = "signature.unknown_component"
    /// A component is one of responses, or of the request of a response.
    package static let signatureComponentNotAllowed: ErrorCode = "signature.component_not_allowed"
    /// A component has a parameter that is not supported, such as `sf` and `tr`.
    package static let signatureUnsupportedComponent: ErrorCode = "signature.unsupported_component"
    /// A component is covered twice.
    package static let signatureRepeatedComponent: ErrorCode = "signature.repeated_component"
    /// The request does not have a covered component, or has a covered query parameter several times.
    package static let signatureComponentMissing: ErrorCode = "signature.component_missing"
    /// A covered component has bytes that no signature covers, such as a line break, or is not the dictionary it is
    /// covered as.
    package static let signatureComponentMalformed: ErrorCode = "signature.component_malformed"
    /// A parameter of the signature is unknown.
    package static let signatureUnknownParameter: ErrorCode = "signature.unknown_parameter"
    /// A parameter of the signature has another type or is too long.
    package static let signatureBadParameter: ErrorCode = "signature.bad_parameter"
    /// The signature names no key.
    package static let signatureKeyMissing: ErrorCode = "signature.keyid_missing"
    /// The signature does not cover what the policy requires.
    package static let signatureNotCovered: ErrorCode = "signature.not_covered"
    /// The request has a body, and the signature does not cover `content-digest`.
    package static let signatureDigestNotCovered: ErrorCode = "signature.digest_not_covered"
    /// The signature has no `created`.
    package static let signatureCreatedMissing: ErrorCode = "signature.created_missing"
    /// The signature is from the future.
    package static let signatureInFuture: ErrorCode = "signature.in_future"
    /// The signature was made too long ago.
    package static let signatureTooOld: ErrorCode = "signature.too_old"
    /// The signature has expired by its own `expires`.
    package static let signatureExpired: ErrorCode = "signature.expired"
    /// The signature's `alg` is not that of the key.
    package static let signatureAlgorithmMismatch: ErrorCode = "signature.alg_mismatch"
    /// The signature has no nonce, though one is required.
    package static let signatureNonceMissing: ErrorCode = "signature.nonce_missing"
}
