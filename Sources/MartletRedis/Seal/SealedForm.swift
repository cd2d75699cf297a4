/// What the bytes of a stored value say about its seal; nothing here is verified.
///
/// A sealed value begins with a byte that no UTF-8 text has, a version, and the id of its key.
package enum SealedForm: Sendable, Equatable {
    static let mark: UInt8 = 0xF5
    static let authenticatedVersion: UInt8 = 1
    static let encryptedVersion: UInt8 = 2
    package static let keyIDLength = 4
    package static let codeLength = 16

    /// A value of a store without a seal.
    case unsealed
    /// A value that a later version sealed, or one that is cut off.
    case unknown
    /// A value in clear text after its authentication code.
    case authenticated(keyID: [UInt8], code: [UInt8], value: [UInt8])
    /// A value that is encrypted and authenticated.
    case encrypted(keyID: [UInt8], sealed: [UInt8])

    /// Reads the form of a stored value.
    package init(_ stored: [UInt8]) {
        guard stored.first == Self.mark else {
            self = .unsealed
            return
        }
        let keyEnd = 2 + Self.keyIDLength
        guard stored.count >= keyEnd else {
            self = .unknown
            return
        }
        let (keyID, rest) = (Array(stored[2..<keyEnd]), stored[keyEnd...])
        switch stored[1] {
        case Self.authenticatedVersion where rest.count >= Self.codeLength:
            self = .authenticated(
                keyID: keyID, code: Array(rest.prefix(Self.codeLength)), value: Array(rest.dropFirst(Self.codeLength)))
        case Self.encryptedVersion: self = .encrypted(keyID: keyID, sealed: Array(rest))
        default: self = .unknown
        }
    }

    /// The stored bytes of a sealed value; `nil` for the other forms.
    package var bytes: [UInt8]? {
        switch self {
        case .unsealed, .unknown: nil
        case .authenticated(let keyID, let code, let value):
            [Self.mark, Self.authenticatedVersion] + keyID + code + value
        case .encrypted(let keyID, let sealed): [Self.mark, Self.encryptedVersion] + keyID + sealed
        }
    }
}
