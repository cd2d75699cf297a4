public import MartletConfig
internal import MartletCore

/// The block of a provider whose `kind` is `api_key`.
public struct APIKeyConfiguration: ConfigurationDecodable {
    /// The file with the keys; `nil` if they are in the account store.
    let file: Located<KeyFileSetting>?
    /// The position of the block.
    let location: SourceLocation
    /// For how long keys are accepted while the account store does not respond.
    let maximumStale: Duration

    public init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        location = reader.location
        file = reader.optional("keys_file")
        let stale: Located<Duration> = reader.optional(
            "max_stale", default: Located(Defaults.maximumStale, at: reader.location))
        if !Defaults.stale.contains(stale.value) {
            reader.error(.configBadValue, at: stale.location, "max_stale: must be between 2s and 1h")
        }
        maximumStale = stale.value
    }

    private enum Defaults {
        static let maximumStale = Duration.seconds(30)
        static let stale = Duration.seconds(2)...Duration.seconds(3600)
    }

    public static var grammar: ConfigurationGrammar? {
        ConfigurationGrammar([
            .optional(
                "keys_file", .path,
                "A file with the keys, which martlet key writes, instead of the account store; mode 0600."),
            .optional(
                "max_stale", .duration, default: "30s",
                "For how long keys are accepted while the account store does not respond."),
        ])
    }
}

/// The key `keys_file:` of a provider, with the keys already parsed.
struct KeyFileSetting: ConfigurationValue {
    let file: KeyFile

    init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        let path = try FilePath(decoding: node)
        do throws(KeyTable.ParseError) { file = try KeyFile(path: path.text) } catch {
            throw ConfigurationError(error.errors.map { Self.diagnostic($0, path: path.text, node) })
        }
    }

    private static func diagnostic(_ error: KeyTable.LineError, path: String, _ node: ConfigurationNode) -> Diagnostic {
        guard let line = error.line else {
            return Diagnostic(.error, .configFileUnreadable, at: node.location, "cannot use '\(path)': \(error.reason)")
        }
        return Diagnostic(.error, .configBadValue, at: node.location, "'\(path)', line \(line): \(error.reason)")
    }
}
