public import MartletConfig
internal import MartletCrypto

/// The block of a provider whose `kind` is `password`.
public struct PasswordConfiguration: ConfigurationDecodable {
    let users: Located<UsersSetting>
    let hash: HashSetting
    let throttle: ThrottleLimits
    /// The minimum length of a new password, in code points.
    let minimumLength: Located<Int>
    /// Whether routes accept `Authorization: Basic`.
    let acceptsBasic: Bool

    public init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        let here = reader.location
        users = reader.optional("users", default: Located(.accounts, at: here))
        hash = reader.block("hash") ?? .standard(at: here)
        throttle = reader.block("throttle") ?? .standard
        let length: Located<Int> = reader.optional("min_length", default: Located(Defaults.minimumLength, at: here))
        if !Defaults.lengths.contains(length.value) {
            reader.error(
                .configBadValue, at: length.location,
                "min_length: must be between \(Defaults.lengths.lowerBound) and \(Defaults.lengths.upperBound), "
                    + "not \(length.value)")
        }
        minimumLength = length
        acceptsBasic = reader.optional("basic", default: true)
    }

    private enum Defaults {
        static let minimumLength = 8
        static let lengths = 1...256
    }
}

// MARK: - Grammar and validation

extension PasswordConfiguration {
    public static var grammar: ConfigurationGrammar? {
        ConfigurationGrammar([
            .optional(
                "users", UsersSetting.shape, default: "accounts",
                "The source of users: the account store, or `htpasswd:` and a file, relative to this one."),
            .optional(
                "hash", .block(of: HashSetting.self), "How new passwords are hashed, and old ones rehashed at login."),
            .optional("throttle", .block(of: ThrottleLimits.self), "The limits for failed logins."),
            .optional(
                "min_length", .integer(Defaults.lengths), default: "8",
                "The minimum length of a new password, in characters."),
            .optional(
                "basic", .boolean, default: "true",
                "Whether routes accept `Authorization: Basic`; if not, passwords are for logins only."),
        ])
    }

    /// Warns about settings that are allowed but weak.
    func validate(into diagnostics: inout Diagnostics) {
        if !hash.parameters.areRecommended {
            diagnostics.warning(
                .configInsecure, at: hash.location,
                "hash: weaker than recommended, such as memory 19MiB with 2 iterations")
        }
        if minimumLength.value < Defaults.minimumLength {
            diagnostics.warning(
                .configInsecure, at: minimumLength.location,
                "min_length: passwords of fewer than \(Defaults.minimumLength) characters are easy to guess")
        }
        for location in throttle.weak {
            diagnostics.warning(.configInsecure, at: location, "attempts: more than 100 allow passwords to be guessed")
        }
        if case .file(let file) = users.value, let first = file.users.weakLines.first {
            let count = file.users.weakLines.count
            diagnostics.warning(
                .configInsecure, at: users.location,
                "users: '\(file.path)' has \(count) bcrypt \(count == 1 ? "hash" : "hashes") with a cost below 10, "
                    + "the first in line \(first)")
        }
    }
}
