internal import MartletConfig
internal import MartletCore
internal import MartletProvider

/// `parameters` and `forward` of `web`: what an authorization request has besides what the flow itself needs.
struct AuthorizationParameters: Sendable {
    /// The flow's own: another value would break it, or what it protects.
    private static let reserved = [
        "response_type", "response_mode", "client_id", "redirect_uri", "scope", "state", "nonce", "code_challenge",
        "code_challenge_method", "request", "request_uri",
    ]
    private static let maximumValueBytes = 1024

    /// With the values of the configuration.
    let fixed: [(name: String, value: String)]
    /// Names of arguments of the link that begins a sign-in, which replace a value of the configuration.
    let forwarded: [String]

    init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        fixed = reader.optional("parameters", as: ParameterMap.self)?.parameters ?? []
        forwarded = reader.optional("forward", as: NonEmpty<String>.self)?.elements ?? []
        guard let node = reader.node("forward") else { return }
        for name in forwarded { try Self.check(name, node) }
    }

    static func check(_ name: String, _ node: ConfigurationNode) throws(ConfigurationError) {
        guard !name.isEmpty, name.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            throw node.error(.configBadValue, "must name a parameter")
        }
        guard !reserved.contains(where: { $0.hasSameBytes(as: name) }) else {
            throw node.error(.configBadValue, "'\(name)' is a parameter that the sign-in itself sets")
        }
    }

    /// The parameters of one request.
    ///
    /// What a page demands comes before what the link says, and that before the configuration.
    func parameters(for request: RedirectRequest, language: LanguageTag?) -> [(name: String, value: String)] {
        var all: [(name: String, value: String)] = []
        func set(_ name: String, _ value: String?) {
            guard let value else { return }
            if let index = all.firstIndex(where: { $0.name.hasSameBytes(as: name) }) {
                all[index].value = value
            } else {
                all.append((name, value))
            }
        }
        set("ui_locales", language?.text)
        for (name, value) in fixed { set(name, value) }
        for name in forwarded {
            if let value = request.arguments[name], (1...Self.maximumValueBytes).contains(value.utf8.count) {
                set(name, value)
            }
        }
        set("max_age", request.maximumAge.map { String($0.wholeSeconds) })
        set("acr_values", request.level)
        set("prompt", request.confirms ? "login" : nil)
        return all
    }
}

/// A block of names and texts.
private struct ParameterMap: ConfigurationValue {
    let parameters: [(name: String, value: String)]

    init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        guard let entries = node.entries else {
            throw node.error(.configWrongType, "must be a block of parameters and their values")
        }
        var parameters: [(name: String, value: String)] = []
        for entry in entries {
            try AuthorizationParameters.check(entry.key.value, entry.value)
            parameters.append((entry.key.value, try entry.value.text()))
        }
        self.parameters = parameters
    }
}
