import Foundation
import MartletCore
import MartletCrypto
import MartletJOSE
import Testing

/// What was counted of one file of vectors.
struct Tally {
    var accepted = 0
    var rejected = 0
    /// Of those rejected: the key must not be used.
    var withoutKey = 0
    var disagreements: [String] = []
    /// Vectors that a verifier may accept or not, with what this one does.
    var optional: [String] = []

    var run: Int { accepted + rejected }

    /// Counts one vector.
    /// - Parameter key: `nil` if it was refused.
    mutating func add(_ name: String, _ expected: Expectation, key: VerificationKey?, isValid: Bool) {
        accepted += isValid ? 1 : 0
        rejected += isValid ? 0 : 1
        withoutKey += key == nil ? 1 : 0
        switch expected {
        case .either: optional.append("\(name) \(isValid ? "accepted" : "rejected")")
        case .valid where !isValid && key != nil, .invalid where isValid: disagreements.append(name)
        case .valid, .invalid: break
        }
    }

    /// Prints a line for whoever runs the test, and expects no disagreement.
    func finish(_ file: String) {
        print(
            "\(file): \(run) run, \(accepted) accepted, \(rejected) rejected (\(withoutKey) of them for their key),"
                + " \(disagreements.count) disagreements\(optional.isEmpty ? "" : ", optional: \(optional)")")
        #expect(disagreements.isEmpty, "\(file)")
        #expect(run > 0, "\(file)")
    }
}

enum Expectation { case valid, invalid, either }

enum Corpus {
    /// Where Debian's package of vectors has them.
    static let nist = "/usr/lib/python3/dist-packages/cryptography_vectors/asymmetric"

    /// The bytes of hexadecimal digits.
    static func hex(_ text: some StringProtocol) -> [UInt8] {
        let found = text.utf8.compactMap { Character(UnicodeScalar($0)).hexDigitValue }
        let digits = found.count % 2 == 0 ? found : [0] + found
        return stride(from: 0, to: digits.count - 1, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
    }

    /// A number in exactly so many bytes, if it fits.
    static func padded(_ bytes: [UInt8], to length: Int) -> [UInt8] {
        let digits = bytes.drop { $0 == 0 }
        return [UInt8](repeating: 0, count: max(0, length - digits.count)) + digits
    }

    /// The key for one algorithm; `nil` if it must not be used, which is right only for weak keys and bad points.
    static func key(_ parts: PublicKeyParts, _ algorithm: SignatureAlgorithm) throws -> VerificationKey? {
        do {
            return try VerificationKey(id: #require(KeyID("corpus")), parts: parts, allowing: [algorithm])
        } catch let error as CryptoError {
            #expect([.cryptoWeakKey, .cryptoBadKey].contains(error.code), "\(error)")
            return nil
        }
    }

    static func read(_ path: String) throws -> [UInt8] { Array(try Data(contentsOf: URL(fileURLWithPath: path))) }
}
