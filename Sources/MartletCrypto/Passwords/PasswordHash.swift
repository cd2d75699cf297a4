public import MartletCore

/// A stored password hash that was read strictly and is within bounds: Argon2id, or one of the formats of `crypt(5)`.
///
/// Checking one takes long by design; do it on a thread that may be busy, never on a loop.
public struct PasswordHash: Sendable, CustomStringConvertible, CustomReflectable {
    /// The formats that are accepted.
    ///
    /// Never among them: MD5 and DES of `crypt(5)`, bare digests such as `{SHA}`, `$2x$`, and plain text.
    public enum Algorithm: String, Sendable, Hashable {
        case argon2id, bcrypt, sha512crypt, sha256crypt, yescrypt, gostYescrypt, scrypt
    }

    /// What decides how long a check takes.
    public struct Work: Sendable, Hashable {
        public let algorithm: Algorithm
        private let parameters: [Int]

        fileprivate init(_ algorithm: Algorithm, _ parameters: [Int]) {
            self.algorithm = algorithm
            self.parameters = parameters
        }

        /// The cost of a bcrypt hash, the exponent of two of its rounds.
        public var bcryptCost: Int? { algorithm == .bcrypt ? parameters.first : nil }
    }

    private enum Form: Sendable {
        case argon2(Argon2Hash)
        case crypt(CryptHash)
    }

    /// The longest text that is looked at.
    private static let longest = 256

    private let form: Form

    /// Reads a stored hash.
    ///
    /// - Throws: `crypto.unsupported_hash` for anything that is none of the formats, `crypto.bad_hash` for one that is
    ///   malformed, `crypto.costly_hash` for one that asks for more work than is allowed.
    public init(_ text: [UInt8]) throws(CryptoError) {
        guard text.count <= Self.longest else { throw .badHash("a hash is longer than any format allows") }
        if text.starts(with: Argon2Hash.prefix) {
            form = .argon2(try Argon2Hash(text))
        } else if let hash = try CryptHash(text) {
            form = .crypt(hash)
        } else {
            throw CryptoError(.cryptoUnsupportedHash, "the text is in no supported format of password hashes")
        }
    }

    /// Reads a stored hash.
    public init(_ text: String) throws(CryptoError) { try self.init(Array(text.utf8)) }

    private init(_ hash: Argon2Hash) { form = .argon2(hash) }

    /// Hashes a password with Argon2id and a new salt of 16 bytes.
    /// - Throws: `crypto.failure` without entropy, `crypto.hash_failed` without memory.
    public static func make(_ password: Secret, with parameters: Argon2Parameters) throws(CryptoError) -> PasswordHash {
        PasswordHash(try Argon2Hash.make(password, with: parameters))
    }

    /// A hash that belongs to no password: what a user is checked against who does not exist.
    /// - Throws: `crypto.failure` without entropy.
    public static func decoy(_ parameters: Argon2Parameters) throws(CryptoError) -> PasswordHash {
        PasswordHash(try Argon2Hash.decoy(parameters))
    }

    /// Whether it is the hash of a password, byte by byte; a bcrypt hash is never that of one over 72 bytes.
    /// - Throws: `crypto.hash_failed` without memory.
    public func matches(_ password: Secret) throws(CryptoError) -> Bool {
        switch form {
        case .argon2(let hash): try hash.matches(password)
        case .crypt(let hash): try password.withBytes { (password) throws(CryptoError) in try hash.matches(password) }
        }
    }

    /// Whether a better one should take its place: another algorithm than Argon2id, or less work than the target's.
    public func needsRehash(_ target: Argon2Parameters) -> Bool {
        switch form {
        case .argon2(let hash): hash.isWeaker(than: target)
        case .crypt: true
        }
    }

    /// What it takes to check it.
    public var work: Work {
        switch form {
        case .argon2(let hash):
            let parameters = hash.parameters
            return Work(.argon2id, [parameters.memory, parameters.iterations, parameters.parallelism])
        case .crypt(let hash): return Work(hash.algorithm, [hash.work])
        }
    }

    /// The text to store; it is nobody else's business.
    public var encoded: String {
        switch form {
        case .argon2(let hash): hash.encoded
        case .crypt(let hash): hash.encoded
        }
    }

    public var description: String { "<redacted>" }
    public var customMirror: Mirror { Mirror(self, children: []) }
}

extension CryptoError {
    static func badHash(_ message: String) -> CryptoError { CryptoError(.cryptoBadHash, message) }
    static func costlyHash(_ message: String) -> CryptoError { CryptoError(.cryptoCostlyHash, message) }
}

extension ErrorCode {
    /// A stored password hash that is in none of the supported formats.
    public static let cryptoUnsupportedHash: ErrorCode = "crypto.unsupported_hash"
    /// A stored password hash that is not spelt as its format demands.
    public static let cryptoBadHash: ErrorCode = "crypto.bad_hash"
    /// A stored password hash that asks for more work than is allowed.
    public static let cryptoCostlyHash: ErrorCode = "crypto.costly_hash"
    /// A password hash could not be computed.
    public static let cryptoHashFailed: ErrorCode = "crypto.hash_failed"
}
