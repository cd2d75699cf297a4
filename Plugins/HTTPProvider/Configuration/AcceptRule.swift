public import MartletConfig
internal import MartletCore
internal import MartletProvider

/// An entry of `accepts`: one kind of credential that the service verifies.
public struct AcceptRule: ConfigurationDecodable {
    let source: Located<CredentialSource>

    public init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        let location = reader.location
        let keys = reader.keys.filter { Self.names.contains($0.value) }
        guard let key = keys.first, keys.count == 1 else {
            throw ConfigurationError(
                .configBadValue, at: keys.last?.location ?? location,
                "\(reader.title) needs one of \(Self.names.joined(separator: ", "))")
        }
        switch key.value {
        case "bearer_prefix":
            source = try reader.required(key.value, as: Located<String>.self).map { .bearerPrefix($0) }
        case "header": source = try reader.required(key.value, as: Located<String>.self).map { .header($0) }
        case "jwt_issuer":
            source = try reader.required(key.value, as: Located<String>.self).map { .bearerJWT(issuers: [$0]) }
        default:
            let basic: Located<Bool> = try reader.required(key.value)
            guard basic.value else {
                throw ConfigurationError(.configBadValue, at: basic.location, "basic: must be true, or absent")
            }
            source = basic.map { _ in .basic }
        }
    }

    static let names = ["bearer_prefix", "header", "basic", "jwt_issuer"]

    public static var grammar: ConfigurationGrammar? {
        ConfigurationGrammar([
            .optional("bearer_prefix", .text, "`Authorization: Bearer` with a token that begins with this."),
            .optional("header", .text, "The value of this header."),
            .optional("basic", .boolean, "`Authorization: Basic`."),
            .optional("jwt_issuer", .text, "`Authorization: Bearer` with a JWT whose `iss` is this."),
        ]).withOneOf(names)
    }
}

extension Located {
    /// The same position with another value.
    fileprivate func map<Other: Sendable>(_ change: (Value) -> Other) -> Located<Other> {
        Located<Other>(change(value), at: location)
    }
}
