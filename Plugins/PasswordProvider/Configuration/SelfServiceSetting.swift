internal import MartletConfig
internal import MartletCore
internal import MartletProvider

/// The block `register:` of a password provider.
struct RegisterSetting: ConfigurationDecodable {
    /// How an address is verified.
    enum Verification: String, CaseIterable, ConfigurationValue {
        /// By a link in a mail.
        case email
        case none
    }

    /// What a registration has to contain besides an address and a password.
    enum Requirement: String, CaseIterable, ConfigurationValue { case name }

    let isEnabled: Bool
    let verification: Located<Verification>
    let requirements: [Requirement]
    let link: LinkTemplate?
    let location: SourceLocation

    init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        location = reader.location
        isEnabled = reader.optional("enabled", default: false)
        verification = reader.optional("verify", default: Located(.email, at: reader.location))
        requirements = reader.optional("require", default: [])
        link = reader.optional("link")
    }

    static var grammar: ConfigurationGrammar? {
        ConfigurationGrammar([
            .optional("enabled", .boolean, default: "false", "Whether users can register."),
            .optional(
                "verify", .choice(Verification.allCases.map(\.rawValue)), default: "email",
                "`email`: a user exists once a link that was mailed to the address is used."),
            .optional(
                "require", .list(.choice(Requirement.allCases.map(\.rawValue)), nonEmpty: false), default: "[]",
                "Members that a registration must have besides `email`."),
            .optional(
                "link", LinkTemplate.shape,
                "The page that verifies an address; it gets the one-time token as `{token}`."),
        ])
    }

    var registration: PasswordSelfService.Registration? {
        guard isEnabled else { return nil }
        return PasswordSelfService.Registration(
            verifiesAddress: verification.value == .email, requiresName: requirements.contains(.name), link: link)
    }
}

/// The key `reset:` of a password provider: `true`, `false`, or a block.
struct ResetSetting: ConfigurationDecodable {
    let isEnabled: Bool
    let link: LinkTemplate?
    let location: SourceLocation

    /// A switch without a block.
    init(isEnabled: Bool, at location: SourceLocation) {
        self.isEnabled = isEnabled
        link = nil
        self.location = location
    }

    init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        location = reader.location
        isEnabled = reader.optional("enabled", default: true)
        link = reader.optional("link")
    }

    static var grammar: ConfigurationGrammar? {
        ConfigurationGrammar([
            .optional("enabled", .boolean, default: "true", "Whether users can replace a forgotten password."),
            .optional(
                "link", LinkTemplate.shape,
                "The page where a new password is chosen; it gets the one-time token as `{token}`."),
        ])
    }

    /// Either form of the key; `nil` if it is absent or invalid.
    static func read(_ reader: inout ConfigurationReader) -> ResetSetting? {
        guard let node = reader.node("reset") else { return nil }
        guard case .scalar = node.content else { return reader.block("reset") }
        let isEnabled: Located<Bool>? = reader.optional("reset")
        return isEnabled.map { ResetSetting(isEnabled: $0.value, at: $0.location) }
    }

    static var shape: ConfigurationGrammar.Shape { .either([.boolean, .block(of: ResetSetting.self)]) }

    var reset: PasswordSelfService.Reset? { isEnabled ? PasswordSelfService.Reset(link: link) : nil }
}
