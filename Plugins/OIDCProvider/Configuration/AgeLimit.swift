internal import MartletConfig
internal import MartletCore

/// How long after `iat` a bearer token is accepted: a duration, or `off`.
struct AgeLimit: ConfigurationValue {
    static let day = AgeLimit(value: .seconds(86_400))
    private static let range: ClosedRange<Duration> = .seconds(1) ... .seconds(30 * 86_400)

    /// `nil` for `off`: a token is accepted until it expires.
    let value: Duration?

    private init(value: Duration) { self.value = value }

    init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        if (try? node.text()) == "off" {
            value = nil
            return
        }
        let age = try Duration(decoding: node)
        guard Self.range.contains(age) else {
            throw node.error(.configBadDuration, "must be between 1s and 30d, or 'off', not \(age.configurationText)")
        }
        value = age
    }
}
