public import MartletCore

/// A stored password hash, parsed strictly and within limits: Argon2id, or one of the formats of `crypt(5)`.
///
/// Checking a password takes long by design: do it on a ``ThreadPool``, never on an event loop.
public struct PasswordHash: Sendable, CustomStringConvertible, CustomReflectable {
    /// The supported formats.
    ///
    /// Not supported: MD5 and DES of `crypt(5)`, bare digests such as `{SHA}`, `$2x$`, and plain text.
    public enum Algorithm: String, Sendable, Hashable {
        case argon2id, bcrypt, sha512crypt, sha256crypt, yescrypt, gostYescrypt, scrypt
    }

    /// The parameters that determine how long a check takes.
    public struct Work: Sendable, Hashable {
        public let algorithm: Algorithm
        private let parameters: [Int]

        fileprivate init(_ algorithm: Algorithm, _ parameters: [Int]) {
            self.algorithm = algorithm
            self.parameters = parameters
        }

        /// The cost of a bcrypt hash: the base-2 logarithm of its rounds.
        public var bcryptCost: Int? { algorithm == .bcrypt ? parameters.first : nil }
    }

    private enum Form: Sendable {
        case argon2(Argon2Hash)
        case crypt(CryptHash)
    }

    /// The maximum length of a hash in bytes.
    private static let maximumLength = 256

    private let form: Form

    /// Parses a stored hash.
    ///
    /// - Throws: `crypto.unsupported_hash` for an unsupported format, `crypto.bad_hash` for a malformed hash,
    ///   `crypto.costly_hash` for a hash that requires more work than is allowed.
    public init(_ text: [UInt8]) throws(CryptoError) {
        guard text.count <= Self.maximumLength else { throw .badHash("a hash is longer than any format allows") }
        if text.starts(with: Argon2Hash.prefix) {
            form = .argon2(try Argon2Hash(text))
        } else if let hash = try CryptHash(text) {
            form = .crypt(hash)
        } else {
            throw CryptoError(.cryptoUnsupportedHash, "unsupported password hash format")
        }
    }

    /// Parses a stored hash.
    public init(_ text: String) throws(CryptoError) { try self.init(Array(text.utf8)) }

    private init(_ hash: Argon2Hash) { form = .argon2(hash) }

    /// Hashes a password with Argon2id and a new salt of 16 bytes.
    /// - Throws: `crypto.failure` without entropy, `crypto.hash_failed` without memory.
    public static func make(_ password: Secret, with parameters: Argon2Parameters) throws(CryptoError) -> PasswordHash {
        PasswordHash(try Argon2Hash.make(password, with: parameters))
    }

    /// A hash that no password matches, to check the passwords of unknown users against.
    /// - Throws: `crypto.failure` without entropy.
    public static func decoy(_ parameters: Argon2Parameters) throws(CryptoError) -> PasswordHash {
        PasswordHash(try Argon2Hash.decoy(parameters))
    }

    /// Whether it is the hash of a password; a bcrypt hash never matches a password over 72 bytes.
    /// - Throws: `crypto.hash_failed` without memory.
    public func matches(_ password: Secret) throws(CryptoError) -> Bool {
        switch form {
        case .argon2(let hash): try hash.matches(password)
        case .crypt(let hash): try password.withBytes { (password) throws(CryptoError) in try hash.matches(password) }
        }
    }

    /// Whether it should be replaced: another algorithm than Argon2id, or less work than `target`.
    public func needsRehash(_ target: Argon2Parameters) -> Bool {
        switch form {
        case .argon2(let hash): hash.isWeaker(than: target)
        case .crypt: true
        }
    }

    /// The work of checking a password against it.
    public var work: Work {
        switch form {
        case .argon2(let hash):
            let parameters = hash.parameters
            return Work(.argon2id, [parameters.memory, parameters.iterations, parameters.parallelism])
        case .crypt(let hash): return Work(hash.algorithm, [hash.work])
        }
    }

    /// The text to store. Treat it as a secret.
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
    /// A stored password hash in an unsupported format.
    public static let cryptoUnsupportedHash: ErrorCode = "crypto.unsupported_hash"
    /// A stored password hash that is malformed.
    public static let cryptoBadHash: ErrorCode = "crypto.bad_hash"
    /// A stored password hash that requires more work than is allowed.
    public static let cryptoCostlyHash: ErrorCode = "crypto.costly_hash"
    /// A password hash could not be computed.
    public static let cryptoHashFailed: ErrorCode = "crypto.hash_failed"
}
