public import MartletCore
@_spi(_Unicode) private import Swift

/// A password as a person typed it, brought into the form that is hashed (RFC 8265 §4.2, OpaqueString).
///
/// Spaces of other scripts become U+0020 and the text is composed (NFC). Nothing is trimmed, folded or merged: a
/// compatibility form would let several passwords match one hash.
public struct PasswordText: Sendable {
    /// Why a text can be nobody's password.
    public enum Flaw: Error, Sendable { case empty, tooLong, notText, controlCharacter }

    /// How long a password may be, in bytes after normalisation.
    public static let maximumBytes = 1024
    /// Composing makes a text at most three times shorter; what is longer than this is not worth the work.
    private static let maximumRawBytes = 3 * maximumBytes

    /// The form that new hashes are made of.
    public let normalised: Secret
    /// What a stored hash is tried with, in order: hashes made elsewhere are of the bytes as they came.
    ///
    /// One, or two where normalisation changed something.
    public let candidates: [Secret]
    /// Its length as people count it.
    public let codePoints: Int
    /// Whether all its characters exist; others may be composed differently one day, so no new hash is made of them.
    public let isAssigned: Bool

    public init(_ password: Secret) throws(Flaw) {
        let parts = try password.withBytes { (bytes) throws(Flaw) in try Self.parts(of: bytes) }
        codePoints = parts.codePoints
        isAssigned = parts.isAssigned
        guard let changed = parts.changed else {
            normalised = password
            candidates = [password]
            return
        }
        normalised = changed
        candidates = [password, changed]
    }

    private struct Parts {
        /// `nil` where the bytes are normalised already.
        var changed: Secret?
        var codePoints: Int
        var isAssigned = true
    }

    private static func parts(of bytes: [UInt8]) throws(Flaw) -> Parts {
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
        let normalised = Array(String(scalars).utf8)
        guard normalised.count <= maximumBytes else { throw .tooLong }
        return Parts(
            changed: normalised == bytes ? nil : Secret(normalised), codePoints: scalars.count,
            isAssigned: scalars.allSatisfy { $0.properties.generalCategory != .unassigned })
    }
}

extension String {
    /// The text in Normalization Form C (UAX #15), of the Unicode version that the standard library has.
    public var composed: String {
        var scalars = String.UnicodeScalarView()
        scalars.append(contentsOf: _nfc)
        return String(scalars)
    }
}
