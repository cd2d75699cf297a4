/// A hash in a format of `crypt(5)`, as in user databases of other systems and htpasswd files.
struct CryptHash: Sendable {
    /// The maximum work that a stored hash may require.
    private enum Limits {
        static let bcryptCost = 4...15
        static let shaRounds = 1_000...1_000_000
        static let shaDefaultRounds = 5_000
        static let scryptBytes = 256 * 1024 * 1024
        static let scryptLanes = 16
        /// Memory times lanes, to which the computing time is proportional.
        static let scryptWork = 1024 * 1024 * 1024
        static let salt = 0...86
    }

    let algorithm: PasswordHash.Algorithm
    /// The cost, rounds or bytes; comparable within one algorithm only.
    let work: Int
    /// The whole hash, which is also the library's setting.
    private let text: [UInt8]

    var encoded: String { String(decoding: text, as: UTF8.self) }

    /// Parses a hash strictly.
    /// - Returns: `nil` if the text has none of the prefixes.
    init?(_ text: [UInt8]) throws(CryptoError) {
        guard let (algorithm, body) = Self.split(text) else { return nil }
        self.algorithm = algorithm
        self.text = text
        switch algorithm {
        case .bcrypt: work = try Self.bcryptCost(body)
        case .sha512crypt: work = try Self.shaRounds(body, digest: 86)
        case .sha256crypt: work = try Self.shaRounds(body, digest: 43)
        case .yescrypt, .gostYescrypt: work = try Self.yescryptBytes(body)
        case .scrypt: work = try Self.scryptBytes(body)
        case .argon2id: return nil
        }
    }

    /// Always computes the hash, so that a password that cannot match takes the same time.
    func matches(_ password: [UInt8]) throws(CryptoError) -> Bool {
        let limit = algorithm == .bcrypt ? 72 : CryptScratch.longestPhrase
        let isWhole = password.count <= limit && !password.contains(0)
        let phrase = password.prefix(limit).prefix { $0 != 0 }
        let found = try CryptScratch.compute(phrase, setting: text)
        return ConstantTime.areEqual(found, text) && isWhole
    }

    private static let prefixes: [(text: String, algorithm: PasswordHash.Algorithm)] = [
        ("$2y$", .bcrypt), ("$2b$", .bcrypt), ("$2a$", .bcrypt), ("$6$", .sha512crypt), ("$5$", .sha256crypt),
        ("$y$", .yescrypt), ("$gy$", .gostYescrypt), ("$7$", .scrypt),
    ]

    private static func split(_ text: [UInt8]) -> (PasswordHash.Algorithm, ArraySlice<UInt8>)? {
        guard let found = prefixes.first(where: { text.starts(with: $0.text.utf8) }) else { return nil }
        return (found.algorithm, text.dropFirst(found.text.utf8.count))
    }
}

// MARK: - The formats

extension CryptHash {
    /// `NN$`, 22 characters of salt and 31 of digest, without nonzero trailing bits.
    private static func bcryptCost(_ body: ArraySlice<UInt8>) throws(CryptoError) -> Int {
        let code = Array(body)
        guard code.count == 56, code[2] == dollar, let tens = digit(code[0]), let ones = digit(code[1]) else {
            throw .badHash("a bcrypt hash is 60 characters with a cost of two digits")
        }
        // bcrypt has its own order of the alphabet; its trailing bits are the low ones.
        let alphabet = Array("./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789".utf8)
        let values = code[3...].map { byte in alphabet.firstIndex(of: byte) }
        guard values.allSatisfy({ $0 != nil }), let salt = values[21], let tag = values[52], salt & 15 == 0,
            tag & 3 == 0
        else { throw .badHash("salt or digest of a bcrypt hash is not canonical") }
        let cost = tens * 10 + ones
        guard cost >= Limits.bcryptCost.lowerBound else { throw .badHash("a bcrypt hash has a cost below 4") }
        guard cost <= Limits.bcryptCost.upperBound else { throw .costlyHash("a bcrypt hash has a cost above 15") }
        return cost
    }

    /// `[rounds=N$]salt$digest`.
    private static func shaRounds(_ body: ArraySlice<UInt8>, digest: Int) throws(CryptoError) -> Int {
        var fields = body.split(separator: dollar, maxSplits: 3, omittingEmptySubsequences: false)
        var rounds = Limits.shaDefaultRounds
        let marker = Array("rounds=".utf8)
        if fields.count == 3, fields[0].starts(with: marker) {
            guard let number = decimal(fields[0].dropFirst(marker.count)), number >= Limits.shaRounds.lowerBound else {
                throw .badHash("a SHA-crypt hash has an invalid number of rounds")
            }
            guard number <= Limits.shaRounds.upperBound else {
                throw .costlyHash("a SHA-crypt hash has more than \(Limits.shaRounds.upperBound) rounds")
            }
            rounds = number
            fields.removeFirst()
        }
        guard fields.count == 2, (1...16).contains(fields[0].count), fields[0].allSatisfy(isSaltByte) else {
            throw .badHash("a SHA-crypt hash has a salt of 1 to 16 characters")
        }
        guard fields[1].count == digest, fields[1].allSatisfy({ value($0) != nil }) else {
            throw .badHash("a SHA-crypt hash has a digest of \(digest) characters")
        }
        return rounds
    }

    /// `parameters$salt$digest`; the parameters are the default flavor, N and r, as from `crypt_gensalt`.
    private static func yescryptBytes(_ body: ArraySlice<UInt8>) throws(CryptoError) -> Int {
        let fields = body.split(separator: dollar, maxSplits: 3, omittingEmptySubsequences: false)
        guard fields.count == 3 else { throw .badHash("a yescrypt hash has three fields") }
        let parameters = fields[0].map { value($0) }
        guard parameters.count == 3, parameters[0] == value(UInt8(ascii: "j")), let exponent = parameters[1],
            let blocks = parameters[2], exponent < 48, blocks < 48
        else { throw CryptoError(.cryptoUnsupportedHash, "a yescrypt hash has parameters other than N and r") }
        try checkSalt(fields[1], digest: fields[2])
        return try memory(exponent: exponent + 1, blocks: blocks + 1, lanes: 1)
    }

    /// `N`, five characters each of `r` and `p`, salt, `$` and digest.
    private static func scryptBytes(_ body: ArraySlice<UInt8>) throws(CryptoError) -> Int {
        let fields = body.split(separator: dollar, maxSplits: 2, omittingEmptySubsequences: false)
        guard fields.count == 2, fields[0].count >= 11 else { throw .badHash("an scrypt hash has two fields") }
        let parameters = fields[0].prefix(11).map { value($0) }
        guard let exponent = parameters[0], let blocks = number(parameters[1...5]),
            let lanes = number(parameters[6...10]),
            exponent >= 1, blocks >= 1, lanes >= 1
        else { throw .badHash("an scrypt hash has invalid parameters") }
        try checkSalt(fields[0].dropFirst(11), digest: fields[1])
        return try memory(exponent: exponent, blocks: blocks, lanes: lanes)
    }

    private static func checkSalt(_ salt: ArraySlice<UInt8>, digest: ArraySlice<UInt8>) throws(CryptoError) {
        guard Limits.salt.contains(salt.count), digest.count == 43,
            (Array(salt) + digest).allSatisfy({ value($0) != nil })
        else { throw .badHash("salt or digest of an scrypt hash has the wrong length or alphabet") }
    }

    /// The memory of a computation with N = 2^exponent, in bytes.
    /// - Throws: `crypto.costly_hash` above the limits.
    private static func memory(exponent: Int, blocks: Int, lanes: Int) throws(CryptoError) -> Int {
        // 128 bytes per block; the exponent is below 64, and 2^21 blocks of minimum size are the limit.
        guard exponent <= 21, lanes <= Limits.scryptLanes, blocks <= Limits.scryptBytes >> (exponent + 7) else {
            throw .costlyHash("an scrypt hash requires more memory than is allowed")
        }
        let bytes = blocks << (exponent + 7)
        guard bytes * lanes <= Limits.scryptWork else {
            throw .costlyHash("an scrypt hash requires more work than is allowed")
        }
        return bytes
    }

    /// Six bits per character, lowest first.
    private static func number(_ digits: ArraySlice<Int?>) -> Int? {
        var number = 0
        for digit in digits.reversed() {
            guard let digit else { return nil }
            number = number << 6 | digit
        }
        return number
    }
}

// MARK: - Characters

private let dollar = UInt8(ascii: "$")

/// The value of a character in the alphabet of `crypt(5)`.
private func value(_ byte: UInt8) -> Int? {
    switch byte {
    case UInt8(ascii: "."): 0
    case UInt8(ascii: "/"): 1
    case UInt8(ascii: "0")...UInt8(ascii: "9"): Int(byte) - 0x30 + 2
    case UInt8(ascii: "A")...UInt8(ascii: "Z"): Int(byte) - 0x41 + 12
    case UInt8(ascii: "a")...UInt8(ascii: "z"): Int(byte) - 0x61 + 38
    default: nil
    }
}

private func digit(_ byte: UInt8) -> Int? {
    (0x30...0x39).contains(byte) ? Int(byte) - 0x30 : nil
}

/// Printable ASCII except the field separators of this format and of the files that contain it.
private func isSaltByte(_ byte: UInt8) -> Bool {
    (0x21...0x7E).contains(byte) && byte != dollar && byte != UInt8(ascii: ":")
}
