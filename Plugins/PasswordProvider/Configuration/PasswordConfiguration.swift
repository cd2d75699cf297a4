public import MartletConfig
internal import MartletCrypto

/// The block of a provider whose `kind` is `password`.
public struct PasswordConfiguration: ConfigurationDecodable {
    let users: Located<UsersSetting>
    let hash: HashSetting
    let throttle: ThrottleLimits
    /// How short a new password may be, in code points.
    let minimumLength: Located<Int>
    /// Whether routes take `Authorization: Basic`.
    let takesBasic: Bool

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
        takesBasic = reader.optional("basic", default: true)
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
                "Where the users are: the account store, or `htpasswd:` and a file relative to this one."),
            .optional("hash", .block(of: HashSetting.self), "How new passwords are hashed, and old ones at login."),
            .optional("throttle", .block(of: ThrottleLimits.self), "How many failed logins are let through."),
            .optional(
                "min_length", .integer(Defaults.lengths), default: "8",
                "How short a new password may be, in characters."),
            .optional(
                "basic", .boolean, default: "true",
                "Whether routes take `Authorization: Basic`; without it names and passwords are for logins alone."),
        ])
    }

    /// What is allowed, but protects less than it should.
    func validate(into diagnostics: inout Diagnostics) {
        if !hash.parameters.areRecommended {
            diagnostics.warning(
                .configInsecure, at: hash.location,
                "hash: less work than is recommended, such as memory 19MiB with 2 iterations")
        }
        if minimumLength.value < Defaults.minimumLength {
            diagnostics.warning(
                .configInsecure, at: minimumLength.location,
                "min_length: passwords of fewer than \(Defaults.minimumLength) characters are guessed")
        }
        for location in throttle.weak {
            diagnostics.warning(.configInsecure, at: location, "attempts: more than 100 let passwords be guessed")
        }
        if case .file(let file) = users.value, let first = file.users.weakLines.first {
            let count = file.users.weakLines.count
            diagnostics.warning(
                .configInsecure, at: users.location,
                "users: '\(file.path)' has \(count) bcrypt \(count == 1 ? "hash" : "hashes") of a cost below 10, "
                    + "the first in line \(first)")
        }
    }
}
