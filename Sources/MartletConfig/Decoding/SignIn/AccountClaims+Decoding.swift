private import MartletCore
internal import MartletJSON

extension AccountClaimSource: KeyedBlock {
    static let keys: [ConfigurationKey<Self>] = [
        .required("provider", \.provider, endsBlock: true, "The name of the provider whose logins have the claim."),
        .required(
            "claim", \.claim, endsBlock: true,
            "The claim of the login, or the names on the way to a member of it."),
        .row(
            .optional(
                "as", .text, "The name of the account's claim; by default that of the login's. A member needs one.")),
        .check { source, reader throws(ConfigurationError) in
            let claim = source.claim
            source.name =
                claim.value.isNested
                ? try reader.required("as") : reader.optional("as") ?? Located(claim.value.name, at: claim.location)
        },
    ]
}

extension AccountBootstrap: KeyedBlock {
    static let keys: [ConfigurationKey<Self>] = [
        .required("provider", \.provider, endsBlock: true, "The provider's name."),
        .required(
            "provider_subject", \.providerSubject, endsBlock: true,
            "The provider's own identifier of the user; of passwords, the name."),
        .row(
            .required(
                "claims", .map(.either([.literal, .list(.literal, nonEmpty: false)])),
                "The claims: texts, numbers, booleans, and lists of them."), endsBlock: true
        ) { bootstrap, reader throws(ConfigurationError) in
            let node = try reader.requiredNode("claims")
            guard let entries = node.entries, !entries.isEmpty else {
                throw node.error(.configWrongType, "claims: must be a block of claims")
            }
            for entry in entries { bootstrap.claims.append((entry.key, try value(entry.value))) }
        },
    ]

    private static func value(_ node: ConfigurationNode) throws(ConfigurationError) -> JSONValue {
        guard let elements = node.elements else { return try ClaimLiteral(decoding: node).json }
        var values: [JSONValue] = []
        for element in elements { values.append(try ClaimLiteral(decoding: element).json) }
        return .array(values)
    }
}

extension ClaimLiteral {
    /// The value as JSON; a whole number is an integer.
    fileprivate var json: JSONValue {
        switch self {
        case .text(let text): .string(text)
        case .bool(let value): .bool(value)
        case .number(let value):
            Int64(exactly: value).map { .integer($0) } ?? JSONNumber(value).map { .number($0) } ?? .null
        }
    }
}
