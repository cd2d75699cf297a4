/// The cost parameters of an Argon2id hash (RFC 9106 §3.1).
@frozen public struct Argon2Parameters: Sendable, Hashable {
    /// The maximum parameters: a stored hash is input, and must not keep a thread busy for arbitrarily long.
    public enum Limits {
        /// In KiB.
        public static let memory = 256 * 1024
        public static let iterations = 16
        public static let parallelism = 16
        /// The minimum KiB per lane that the algorithm requires.
        public static let memoryPerLane = 8
        static let salt = 8...64
        static let tag = 16...64
    }

    /// In KiB.
    public let memory: Int
    public let iterations: Int
    public let parallelism: Int

    /// - Throws: `crypto.costly_hash` above the limits, `crypto.bad_hash` below the algorithm's minimum.
    public init(memory: Int, iterations: Int, parallelism: Int) throws(CryptoError) {
        guard memory <= Limits.memory, iterations <= Limits.iterations, parallelism <= Limits.parallelism else {
            throw CryptoError(.cryptoCostlyHash, "an Argon2id hash requires more work than is allowed")
        }
        guard iterations >= 1, parallelism >= 1, memory >= Limits.memoryPerLane * parallelism else {
            throw CryptoError(.cryptoBadHash, "an Argon2id hash has invalid parameters")
        }
        self.memory = memory
        self.iterations = iterations
        self.parallelism = parallelism
    }

    private init(recommended memory: Int, iterations: Int) {
        self.memory = memory
        self.iterations = iterations
        parallelism = 1
    }

    /// The default parameters of new hashes: 19 MiB, two passes.
    public static let standard = recommended[1]

    /// The minimum sets of the OWASP Password Storage Cheat Sheet, which trade memory for passes.
    private static let recommended = [
        Argon2Parameters(recommended: 47_104, iterations: 1), Argon2Parameters(recommended: 19_456, iterations: 2),
        Argon2Parameters(recommended: 12_288, iterations: 3), Argon2Parameters(recommended: 9_216, iterations: 4),
        Argon2Parameters(recommended: 7_168, iterations: 5),
    ]

    /// Whether they require at least as much work as one of the recommended sets.
    public var areRecommended: Bool { Self.recommended.contains { !isLess(than: $0) } }

    /// Whether these parameters require less work than `target`. Lanes do not count: they are not more work.
    func isLess(than target: Argon2Parameters) -> Bool {
        memory < target.memory || iterations < target.iterations
    }
}
