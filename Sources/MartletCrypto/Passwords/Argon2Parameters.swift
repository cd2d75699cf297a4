/// How much work an Argon2id hash is (RFC 9106 §3.1).
public struct Argon2Parameters: Sendable, Hashable {
    /// What is computed at most: a stored hash is an input, and must not choose how long it keeps a thread busy.
    public enum Limits {
        /// In KiB.
        public static let memory = 256 * 1024
        public static let iterations = 16
        public static let parallelism = 16
        /// KiB for each lane, which the algorithm cannot do without.
        public static let memoryPerLane = 8
        static let salt = 8...64
        static let tag = 16...64
    }

    /// In KiB.
    public let memory: Int
    public let iterations: Int
    public let parallelism: Int

    /// - Throws: `crypto.costly_hash` for more than the limits allow, `crypto.bad_hash` for less than the algorithm needs.
    public init(memory: Int, iterations: Int, parallelism: Int) throws(CryptoError) {
        guard memory <= Limits.memory, iterations <= Limits.iterations, parallelism <= Limits.parallelism else {
            throw CryptoError(.cryptoCostlyHash, "an Argon2id hash asks for more work than is allowed")
        }
        guard iterations >= 1, parallelism >= 1, memory >= Limits.memoryPerLane * parallelism else {
            throw CryptoError(.cryptoBadHash, "an Argon2id hash has parameters that the algorithm does not")
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

    /// The parameters of new hashes where nothing else is configured: 19 MiB, two passes.
    public static let standard = recommended[1]

    /// The least that the OWASP Password Storage Cheat Sheet asks for, as trades of memory against passes.
    private static let recommended = [
        Argon2Parameters(recommended: 47_104, iterations: 1), Argon2Parameters(recommended: 19_456, iterations: 2),
        Argon2Parameters(recommended: 12_288, iterations: 3), Argon2Parameters(recommended: 9_216, iterations: 4),
        Argon2Parameters(recommended: 7_168, iterations: 5),
    ]

    /// Whether they are at least as much work as one of the recommended sets.
    public var areRecommended: Bool { Self.recommended.contains { !isLess(than: $0) } }

    /// Whether a hash with these should be made anew with others.
    ///
    /// More lanes are not more work, so they do not count.
    func isLess(than target: Argon2Parameters) -> Bool {
        memory < target.memory || iterations < target.iterations
    }
}
