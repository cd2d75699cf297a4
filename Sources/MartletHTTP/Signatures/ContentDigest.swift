package import MartletCore

/// The digests of a body in `Content-Digest` (RFC 9530 §2).
package struct ContentDigest: Sendable, Equatable {
    /// The algorithms that RFC 9530 §5 calls active; others are ignored.
    package let sha256: [UInt8]?
    package let sha512: [UInt8]?

    /// Parses the field, with all its lines joined with commas.
    /// - Throws: `digest.malformed` unless it is a dictionary of byte sequences, of the right length where the algorithm
    ///   is known; `digest.unknown_algorithm` if none is.
    package init(_ value: [UInt8]) throws(ContentDigestError) {
        let entries: [StructuredField.Entry]
        do throws(StructuredFieldError) { entries = try StructuredField.dictionary(value) } catch {
            throw ContentDigestError(code: .digestMalformed, message: "Content-Digest: \(error.message)")
        }
        var found: [String: [UInt8]] = [:]
        for entry in entries {
            guard let digest = entry.member.item?.value.bytes else {
                throw ContentDigestError(code: .digestMalformed, message: "Content-Digest has another type")
            }
            let length = ["sha-256": 32, "sha-512": 64][entry.key]
            guard length == nil || digest.count == length else {
                throw ContentDigestError(code: .digestMalformed, message: "a digest has \(digest.count) bytes")
            }
            found[entry.key] = digest
        }
        sha256 = found["sha-256"]
        sha512 = found["sha-512"]
        guard sha256 != nil || sha512 != nil else {
            throw ContentDigestError(
                code: .digestUnknownAlgorithm, message: "Content-Digest has neither sha-256 nor sha-512")
        }
    }
}

/// Why a `Content-Digest` is rejected.
package struct ContentDigestError: CodedError {
    package let code: ErrorCode
    /// For operators; holds no part of the field.
    package let message: String
}

extension ErrorCode {
    /// The field is not a dictionary of digests.
    package static let digestMalformed: ErrorCode = "digest.malformed"
    /// The field has no digest of a known algorithm.
    package static let digestUnknownAlgorithm: ErrorCode = "digest.unknown_algorithm"
}
