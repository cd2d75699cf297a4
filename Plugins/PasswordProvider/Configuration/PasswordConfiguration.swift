public import MartletConfig
internal import MartletCore
internal import MartletCrypto
internal import MartletProvider

/// The block of a provider whose `kind` is `password`.
public struct PasswordConfiguration: ConfigurationDecodable {
    let users: Located<UsersSetting>
    let hash: HashSetting
    let throttle: ThrottleLimits
    /// The minimum length of a new password, in code points.
    let minimumLength: Located<Int>
    /// Whether routes accept `Authorization: Basic`.
    let acceptsBasic: Bool
    /// The passwords that are rejected as new ones.
    let denied: DenyFile?
    let register: RegisterSetting?
    let reset: ResetSetting?

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
        denied = reader.optional("deny_file")
        register = reader.block("register")
        reset = ResetSetting.read(&reader)
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
                "hash", .block(of: HashSetting.self), default: "{}",
                "How new passwords are hashed, and old ones rehashed at login."),
            .optional("throttle", .block(of: ThrottleLimits.self), default: "{}", "The limits for failed logins."),
            .optional(
                "min_length", .integer(Defaults.lengths), default: "8",
                "The minimum length of a new password, in characters."),
            .optional(
                "basic", .boolean, default: "true",
                "Whether routes accept `Authorization: Basic`; if not, passwords are for logins only."),
            .optional(
                "deny_file", .path,
                "A sorted list of SHA-1 digests of breached passwords, which are rejected as new passwords."),
            .optional("register", .block(of: RegisterSetting.self), "How users register; off by default."),
            .optional("reset", ResetSetting.shape, default: "false", "Whether users can replace a forgotten password."),
        ])
    }

    /// Users in a file have no records.
    var storesRecords: Bool { if case .accounts = users.value { true } else { false } }

    /// What users may do by themselves.
    var selfService: PasswordSelfService {
        let (registration, reset) = (register?.registration, reset?.reset)
        let registrationMail = registration?.verifiesAddress == true ? register?.location : nil
        let resetMail = reset == nil ? nil : self.reset?.location
        return PasswordSelfService(
            registration: registration, reset: reset, mailLocation: registrationMail ?? resetMail)
    }

    /// Rejects settings that do not fit together, and warns about settings that are allowed but weak.
    func validate(into diagnostics: inout Diagnostics) {
        if case .file = users.value {
            let blocks = [
                ("register", register?.registration == nil ? nil : register?.location),
                ("reset", reset?.reset == nil ? nil : reset?.location),
            ]
            for (key, location) in blocks {
                guard let location else { continue }
                diagnostics.error(.configBadValue, at: location, "\(key): needs users: accounts")
            }
        }
        if let register, register.registration != nil, register.verification.value == .none {
            let end = reset?.reset == nil ? "for ever: nothing proves it" : "until its owner resets the password"
            diagnostics.warning(
                .configInsecure, at: register.verification.location,
                "verify: with none a client can register the address of another person, and use the account \(end)")
        }
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
