import Foundation
import MartletCore
import MartletCrypto
import MartletJOSE
import Testing

/// The verification vectors of NIST, and of RFC 8032, that Debian's `python3-cryptography-vectors` has.
@Suite(
    .enabled(
        if: FileManager.default.fileExists(atPath: Corpus.nist),
        "python3-cryptography-vectors is not installed"))
struct NISTVectorTests {
    /// One vector: its own lines, those of its section before it, and the heading of the section.
    struct Record {
        let section: String
        let values: [String: String]

        subscript(_ name: String) -> [UInt8] { Corpus.hex(values[name] ?? "") }
    }

    /// The records of a file, each of which ends with a line of this name.
    static func records(_ file: String, endingWith last: String) throws -> [Record] {
        let text = String(decoding: try Corpus.read("\(Corpus.nist)/\(file)"), as: UTF8.self)
        var records: [Record] = []
        var section = ""
        var values: [String: String] = [:]
        for line in text.split(whereSeparator: \.isNewline) {
            if line.hasPrefix("[") {
                section = String(line.trimmingPrefix("[").prefix { $0 != "]" })
                values = [:]
            }
            let pair = line.split(separator: "=", maxSplits: 1).map { $0.trimmingCharacters(in: .whitespaces) }
            guard pair.count > 0, line.contains("="), !line.hasPrefix("#"), !line.hasPrefix("[") else { continue }
            values[pair[0]] = pair.count == 2 ? pair[1] : ""
            guard pair[0] == last else { continue }
            records.append(Record(section: section, values: values))
            values["CONTEXT"] = nil
        }
        return records
    }

    static func expectation(_ record: Record) -> Expectation {
        guard let result = record.values["Result"] else { return .valid }
        return result.hasPrefix("P") ? .valid : .invalid
    }

    static let rsa: [(String, [String: SignatureAlgorithm])] = [
        ("SigVer15_186-3.rsp", ["SHA256": .rs256, "SHA384": .rs384, "SHA512": .rs512]),
        ("SigVerPSS_186-3.rsp", ["SHA256": .ps256, "SHA384": .ps384, "SHA512": .ps512]),
    ]

    @Test(arguments: rsa)
    func `RSA`(file: String, algorithms: [String: SignatureAlgorithm]) throws {
        var tally = Tally()
        for (index, record) in try Self.records("RSA/FIPS_186-2/\(file)", endingWith: "Result").enumerated() {
            guard let algorithm = record.values["SHAAlg"].flatMap({ algorithms[$0] }) else { continue }
            let parts = PublicKeyParts.rsa(modulus: record["n"], exponent: record["e"])
            let key = try Corpus.key(parts, algorithm)
            let isValid =
                key?.verify(signature: record["S"], signingInput: record["Msg"], as: algorithm) == true
            // The salts of these have 10 bytes, which is not the length of any hash.
            let expected = file.contains("PSS") ? .invalid : Self.expectation(record)
            tally.add("\(record.section) \(index)", expected, key: key, isValid: isValid)
        }
        tally.finish(file)
        #expect(file.contains("PSS") ? tally.accepted == 0 : tally.accepted >= 9)
        #expect(tally.run - tally.withoutKey >= 48)
    }

    static let curves: [(String, String, Bool)] = [
        ("SigVer.rsp", "Result", true), ("SigGen.txt", "S", false),
    ]

    @Test(arguments: curves)
    func `ECDSA`(file: String, last: String, hasInvalid: Bool) throws {
        let sections: [String: SignatureAlgorithm] = [
            "P-256,SHA-256": .es256, "P-384,SHA-384": .es384, "P-521,SHA-512": .es512,
        ]
        var tally = Tally()
        for (index, record) in try Self.records("ECDSA/FIPS_186-3/\(file)", endingWith: last).enumerated() {
            guard let algorithm = sections[record.section] else { continue }
            let length = algorithm == .es256 ? 32 : algorithm == .es384 ? 48 : 66
            func number(_ name: String) -> [UInt8] { Corpus.padded(record[name], to: length) }
            let (x, y) = (number("Qx"), number("Qy"))
            let parts: PublicKeyParts =
                switch algorithm {
                case .es256: .p256(x: x, y: y)
                case .es384: .p384(x: x, y: y)
                default: .p521(x: x, y: y)
                }
            let key = try Corpus.key(parts, algorithm)
            let isValid =
                key?.verify(signature: number("R") + number("S"), signingInput: record["Msg"], as: algorithm) == true
            #expect(key != nil || Self.expectation(record) == .invalid)
            tally.add("\(record.section) \(index)", Self.expectation(record), key: key, isValid: isValid)
        }
        tally.finish(file)
        #expect(hasInvalid ? tally.accepted >= 6 && tally.rejected >= 20 : tally.accepted == tally.run)
    }

    @Test func `Ed25519`() throws {
        var tally = Tally()
        let text = String(decoding: try Corpus.read("\(Corpus.nist)/Ed25519/sign.input"), as: UTF8.self)
        for (index, line) in text.split(whereSeparator: \.isNewline).enumerated() {
            // The private key, the public key, the message, and the signature with the message behind it.
            let fields = line.split(separator: ":", omittingEmptySubsequences: false).map { Corpus.hex($0) }
            try #require(fields.count >= 4)
            let key = try #require(try Corpus.key(.ed25519(x: fields[1]), .edDSA))
            let signature = Array(fields[3].prefix(64))
            let isValid = key.verify(signature: signature, signingInput: fields[2], as: .edDSA)
            tally.add("\(index)", .valid, key: key, isValid: isValid)
            var changed = fields[2] + [0]
            changed[index % changed.count] ^= 1
            let isChangedValid = key.verify(signature: signature, signingInput: changed, as: .edDSA)
            tally.add("\(index) changed", .invalid, key: key, isValid: isChangedValid)
        }
        tally.finish("Ed25519/sign.input")
        #expect(tally.accepted >= 1024)
    }

    @Test func `Ed448`() throws {
        var tally = Tally()
        for (index, record) in try Self.records("Ed448/rfc8032.txt", endingWith: "SIGNATURE").enumerated() {
            let key = try #require(try Corpus.key(.ed448(x: record["PUBLIC"]), .edDSA))
            let isValid = key.verify(signature: record["SIGNATURE"], signingInput: record["MESSAGE"], as: .edDSA)
            // A signature for a context is none without it (RFC 8037 §3.1 has no context).
            let expected: Expectation = record.values["CONTEXT"] == nil ? .valid : .invalid
            tally.add("\(index)", expected, key: key, isValid: isValid)
        }
        tally.finish("Ed448/rfc8032.txt")
        #expect(tally.accepted >= 8 && tally.rejected >= 1)
    }
}
