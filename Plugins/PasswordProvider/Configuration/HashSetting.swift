internal import MartletConfig
internal import MartletCrypto

/// The block `hash:` of a password provider: how new passwords are hashed.
struct HashSetting {
    let parameters: Argon2Parameters
    let location: SourceLocation

    /// The defaults if the block is absent.
    static func standard(at location: SourceLocation) -> HashSetting {
        HashSetting(parameters: .standard, location: location)
    }

    private enum Algorithm: String, CaseIterable, ConfigurationValue { case argon2id }

    private typealias Limits = Argon2Parameters.Limits
}

extension HashSetting: ConfigurationDecodable {
    init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        location = reader.location
        let standard = Argon2Parameters.standard
        _ = reader.optional("algorithm", default: Algorithm.argon2id)
        let iterations = reader.optional("iterations", default: standard.iterations, in: 1...Limits.iterations)
        let parallelism = reader.optional("parallelism", default: standard.parallelism, in: 1...Limits.parallelism)
        let size: Located<ByteSize>? = reader.optional("memory")
        let memory = size?.value ?? .kibibytes(standard.memory)
        let least = ByteSize.kibibytes(Limits.memoryPerLane * parallelism)
        let most = ByteSize.kibibytes(Limits.memory)
        guard memory.bytes % 1024 == 0, (least...most).contains(memory) else {
            throw ConfigurationError(
                .configBadSize, at: size?.location ?? location,
                "memory: must be whole KiB, at least \(least.configurationText) for this parallelism and at most "
                    + "\(most.configurationText), not \(memory.configurationText)")
        }
        do {
            parameters = try Argon2Parameters(
                memory: memory.bytes / 1024, iterations: iterations, parallelism: parallelism)
        } catch {
            throw ConfigurationError(.configBadValue, at: location, error.message)
        }
    }

    static var grammar: ConfigurationGrammar? {
        ConfigurationGrammar([
            .optional(
                "algorithm", .choice(Algorithm.allCases.map(\.rawValue)), default: "argon2id",
                "The algorithm for new passwords."),
            .optional("memory", .size, default: "19MiB", "The memory of one hash; at most 256MiB."),
            .optional("iterations", .integer(1...Limits.iterations), default: "2", "Passes over the memory."),
            .optional("parallelism", .integer(1...Limits.parallelism), default: "1", "Lanes of the memory."),
        ])
    }
}
