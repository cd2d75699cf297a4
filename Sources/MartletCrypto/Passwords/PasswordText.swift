public import MartletCore
@_spi(_Unicode) private import Swift

/// A password as typed, normalized to the form that is hashed (RFC 8265 §4.2, OpaqueString).
///
/// Spaces of other scripts become U+0020 and the text is composed (NFC). Nothing is trimmed, case-folded or merged: a
/// compatibility form would let several passwords match one hash.
public struct PasswordText: Sendable {
    /// Why a text is not a valid password.
    public enum ValidationError: Error, Sendable { case empty, tooLong, notText, controlCharacter }

    /// The maximum length of a password in bytes after normalization.
    public static let maximumBytes = 1024
    /// Composition makes a text at most three times shorter, so longer input is rejected before the work.
    private static let maximumRawBytes = 3 * maximumBytes

    /// The form from which new hashes are computed.
    public let normalized: Secret
    /// The forms to check against a stored hash, in order: hashes made elsewhere are of the bytes as typed.
    ///
    /// Two if normalization changed the text, else one.
    public let candidates: [Secret]
    /// The length in code points.
    public let codePoints: Int
    /// Whether all code points are assigned. The composition of others may change, so no new hash is made of them.
    public let isAssigned: Bool

    public init(_ password: Secret) throws(ValidationError) {
        let parts = try password.withBytes { (bytes) throws(ValidationError) in try Self.parts(of: bytes) }
        codePoints = parts.codePoints
        isAssigned = parts.isAssigned
        guard let changed = parts.changed else {
            normalized = password
            candidates = [password]
            return
        }
        normalized = changed
        candidates = [password, changed]
    }

    private struct Parts {
        /// `nil` if the bytes are already normalized.
        var changed: Secret?
        var codePoints: Int
        var isAssigned = true
    }

    private static func parts(of bytes: [UInt8]) throws(ValidationError) -> Parts {
        guard !bytes.isEmpty else { throw .empty }
        guard bytes.count <= maximumRawBytes else { throw .tooLong }
        if bytes.allSatisfy({ (0x20...0x7E).contains($0) }) {
            guard bytes.count <= maximumBytes else { throw .tooLong }
            return Parts(changed: nil, codePoints: bytes.count)
        }
        guard let text = String(validating: bytes, as: UTF8.self) else { throw .notText }
        var mapped = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            switch scalar.properties.generalCategory {
            case .control: throw .controlCharacter
            case .spaceSeparator: mapped.append(" ")
            default: mapped.append(scalar)
            }
        }
        let scalars = String(mapped).composed.unicodeScalars
        let normalized = Array(String(scalars).utf8)
        guard normalized.count <= maximumBytes else { throw .tooLong }
        return Parts(
            changed: normalized == bytes ? nil : Secret(normalized), codePoints: scalars.count,
            isAssigned: scalars.allSatisfy { $0.properties.generalCategory != .unassigned })
    }
}

extension String {
    /// The text in Normalization Form C (UAX #15), for the standard library's Unicode version.
    public var composed: String {
        var scalars = String.UnicodeScalarView()
        scalars.append(contentsOf: _nfc)
        return String(scalars)
    }
}
