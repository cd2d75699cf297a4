private import CArgon2
internal import MartletCore

/// An Argon2id hash in the PHC string format: `$argon2id$v=19$m=…,t=…,p=…$salt$tag`.
struct Argon2Hash: Sendable {
    static let prefix = Array("$argon2id$".utf8)
    /// Version 1.3, the only supported one; without the field it would be an older version.
    private static let version = Array("v=19".utf8)
    private static let saltLength = 16
    private static let tagLength = 32

    let parameters: Argon2Parameters
    private let salt: [UInt8]
    private let tag: [UInt8]

    /// Parses a hash strictly: fields in order and in canonical form.
    init(_ text: [UInt8]) throws(CryptoError) {
        let fields = text.split(separator: UInt8(ascii: "$"), maxSplits: 6, omittingEmptySubsequences: false)
        guard text.starts(with: Self.prefix), fields.count == 6 else {
            throw .badHash("an Argon2id hash has six fields")
        }
        guard fields[2].elementsEqual(Self.version) else {
            throw CryptoError(.cryptoUnsupportedHash, "an Argon2id hash must have version 19")
        }
        parameters = try Self.parameters(fields[3])
        guard let salt = Base64.decode(fields[4], padding: .absent),
            let tag = Base64.decode(fields[5], padding: .absent)
        else { throw .badHash("salt or tag of an Argon2id hash is not canonical base64") }
        guard Argon2Parameters.Limits.salt.contains(salt.count), Argon2Parameters.Limits.tag.contains(tag.count) else {
            throw .badHash("salt or tag of an Argon2id hash is too short or too long")
        }
        self.salt = salt
        self.tag = tag
    }

    private init(parameters: Argon2Parameters, salt: [UInt8], tag: [UInt8]) {
        self.parameters = parameters
        self.salt = salt
        self.tag = tag
    }

    /// Hashes a password with a new salt.
    static func make(_ password: Secret, with parameters: Argon2Parameters) throws(CryptoError) -> Argon2Hash {
        let salt = try RandomBytes.make(saltLength)
        let tag = try compute(password, parameters: parameters, salt: salt, length: tagLength)
        return Argon2Hash(parameters: parameters, salt: salt, tag: tag)
    }

    /// A hash that no password matches, with the same cost as a real one.
    static func decoy(_ parameters: Argon2Parameters) throws(CryptoError) -> Argon2Hash {
        Argon2Hash(
            parameters: parameters, salt: try RandomBytes.make(saltLength), tag: try RandomBytes.make(tagLength))
    }

    func matches(_ password: Secret) throws(CryptoError) -> Bool {
        ConstantTime.areEqual(
            try Self.compute(password, parameters: parameters, salt: salt, length: tag.count), tag)
    }

    func isWeaker(than target: Argon2Parameters) -> Bool {
        parameters.isLess(than: target) || salt.count < Self.saltLength || tag.count < Self.tagLength
    }

    var encoded: String {
        let work = "m=\(parameters.memory),t=\(parameters.iterations),p=\(parameters.parallelism)"
        let (salt, tag) = (Base64.encode(salt, padding: .absent), Base64.encode(tag, padding: .absent))
        return "$argon2id$v=19$\(work)$\(salt)$\(tag)"
    }

    private static func parameters(_ field: ArraySlice<UInt8>) throws(CryptoError) -> Argon2Parameters {
        let parts = field.split(separator: UInt8(ascii: ","), maxSplits: 3, omittingEmptySubsequences: false)
        guard parts.count == 3, let memory = number(parts[0], named: "m"), let passes = number(parts[1], named: "t"),
            let lanes = number(parts[2], named: "p")
        else { throw .badHash("the parameters of an Argon2id hash are m, t and p, in decimal") }
        return try Argon2Parameters(memory: memory, iterations: passes, parallelism: lanes)
    }

    private static func number(_ part: ArraySlice<UInt8>, named name: Unicode.Scalar) -> Int? {
        guard part.starts(with: [UInt8(ascii: name), UInt8(ascii: "=")]) else { return nil }
        return decimal(part.dropFirst(2))
    }

    private static func compute(
        _ password: Secret, parameters: Argon2Parameters, salt: [UInt8], length: Int
    ) throws(CryptoError) -> [UInt8] {
        var tag = [UInt8](repeating: 0, count: length)
        let status = password.withBytes { password in
            unsafe password.withUnsafeBufferPointer { password in
                unsafe salt.withUnsafeBufferPointer { salt in
                    unsafe tag.withUnsafeMutableBufferPointer { tag in
                        unsafe martlet_argon2id(
                            UInt32(clamping: parameters.memory), UInt32(clamping: parameters.iterations),
                            UInt32(clamping: parameters.parallelism), password.baseAddress, password.count,
                            salt.baseAddress, salt.count, tag.baseAddress, tag.count)
                    }
                }
            }
        }
        guard status == Int32(ARGON2_OK.rawValue) else {
            throw CryptoError(.cryptoHashFailed, "libargon2 failed with status \(status)")
        }
        return tag
    }
}

/// Parses one to nine decimal digits without a leading zero.
func decimal(_ text: ArraySlice<UInt8>) -> Int? {
    guard (1...9).contains(text.count), text.first != UInt8(ascii: "0") || text.count == 1 else { return nil }
    var value = 0
    for byte in text {
        let digit = byte &- UInt8(ascii: "0")
        guard digit < 10 else { return nil }
        value = value &* 10 &+ Int(digit)
    }
    return value
}
