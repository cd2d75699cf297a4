internal import MartletConfig

/// The block `throttle:` of a password provider.
struct ThrottleLimits {
    /// Failures within the window after which a user is banned.
    let attempts: Int
    let window: Duration
    let ban: Duration
    let address: AddressLimits
    /// The locations of limits that are too high to protect.
    var weak: [SourceLocation] = []

    private static let counts = 1...1_000_000
    private static let spans = Duration.seconds(1) ... .seconds(30 * 86_400)
    /// The limit of NIST SP 800-63B for consecutive failures.
    private static let recommendedAttempts = 100

    /// The defaults if the block is absent.
    static let standard = ThrottleLimits(
        attempts: 5, window: .seconds(120), ban: .seconds(300), address: AddressLimits.standard)

    /// The nested block `per_address:`.
    struct AddressLimits {
        /// Failures within the window after which an address is rejected.
        let attempts: Int
        let window: Duration

        static let standard = AddressLimits(attempts: 100, window: .seconds(120))
    }
}

extension ThrottleLimits: ConfigurationDecodable {
    init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        let standard = Self.standard
        let count: Located<Int>? = reader.optional("attempts")
        if let count, !Self.counts.contains(count.value) {
            reader.error(
                .configBadValue, at: count.location,
                "attempts: must be between \(Self.counts.lowerBound) and \(Self.counts.upperBound), not \(count.value)")
        }
        attempts = count?.value ?? standard.attempts
        window = reader.optional("window", default: standard.window, in: Self.spans)
        ban = reader.optional("ban", default: standard.ban, in: Self.spans)
        address = reader.block("per_address") ?? .standard
        weak = count.map { $0.value > Self.recommendedAttempts ? [$0.location] : [] } ?? []
    }

    static var grammar: ConfigurationGrammar? {
        ConfigurationGrammar([
            .optional("attempts", .integer(counts), default: "5", "Failed logins of one user before a ban."),
            .optional("window", .duration, default: "2m", "The time in which they are counted."),
            .optional("ban", .duration, default: "5m", "How long logins of this user are then rejected."),
            .optional(
                "per_address", .block(of: AddressLimits.self), default: "{}",
                "The same for one address, for all users together."),
        ])
    }
}

extension ThrottleLimits.AddressLimits: ConfigurationDecodable {
    init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        attempts = reader.optional("attempts", default: Self.standard.attempts, in: ThrottleLimits.counts)
        window = reader.optional("window", default: Self.standard.window, in: ThrottleLimits.spans)
    }

    static var grammar: ConfigurationGrammar? {
        ConfigurationGrammar([
            .optional(
                "attempts", .integer(ThrottleLimits.counts), default: "100",
                "Failed logins from one address (IPv6: one /64) before it is rejected."),
            .optional("window", .duration, default: "2m", "The time in which they are counted."),
        ])
    }
}
