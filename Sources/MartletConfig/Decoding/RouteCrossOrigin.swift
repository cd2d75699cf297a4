private import MartletCore

/// `cors:` of a route.
struct RouteCrossOrigin: ConfigurationDecodable {
    /// Browsers keep the response to a preflight for a day at most.
    private static let longest = Duration.seconds(86_400)

    let value: CrossOriginConfiguration

    static var grammar: ConfigurationGrammar? {
        ConfigurationGrammar([
            .required(
                "origins", .list(.text, nonEmpty: true),
                "The origins whose pages may use the route: exact ones, of any scheme, `https://*.example.com` for those"
                    + " below a domain, `*` for all, `null` for pages without one."),
            .optional(
                "methods", .list(.text, nonEmpty: true), default: "[GET, HEAD, POST]", "The methods that pages may use."
            ),
            .optional(
                "headers", .list(.text, nonEmpty: false), default: "[]",
                "The request headers that pages may set, such as `authorization`."),
            .optional(
                "expose", .list(.text, nonEmpty: false), default: "[]", "The response headers that pages may read."),
            .optional(
                "credentials", .boolean, default: "false",
                "Whether pages may use cookies and other credentials that browsers send by themselves."),
            .optional(
                "max_age", .duration,
                "How long browsers may keep the response to a preflight, up to 1d; a few seconds if absent."),
        ])
    }

    init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        let methods = reader.optional("methods", as: NonEmpty<MethodName>.self)?.map(\.text)
        let headers = reader.optional("headers", as: [ListedFieldName].self) ?? []
        let exposed = reader.optional("expose", as: [ListedFieldName].self) ?? []
        let credentials = reader.optional("credentials", as: Located<Bool>.self)
        let age = reader.optional("max_age", in: Duration.zero...Self.longest)
        if let node = reader.node("max_age"), let age, age > .zero, age < .seconds(1) {
            reader.error(.configBadDuration, at: node.location, "max_age: must be 0s, or at least 1s")
        }
        let origins = try reader.required("origins", as: NonEmpty<Located<CrossOriginPattern>>.self)
        var value = CrossOriginConfiguration(origins: origins.map(\.value.origin))
        if let methods { value.methods = methods }
        (value.headers, value.exposed) = (headers.map(\.text), exposed.map(\.text))
        value.allowsCredentials = credentials?.value ?? false
        value.maximumAge = age
        for origin in origins {
            Self.check(origin, credentials: credentials, &reader)
        }
        self.value = value
    }

    private static func check(
        _ origin: Located<CrossOriginPattern>, credentials: Located<Bool>?, _ reader: inout ConfigurationReader
    ) {
        switch origin.value.origin {
        case .any:
            guard let credentials, credentials.value else { return }
            reader.error(
                .configConflictingKeys, at: credentials.location,
                "credentials: every page could act in the name of its visitors: list the origins instead of '*'")
        case .null:
            reader.diagnostics.warning(
                .configInsecure, at: origin.location,
                "origins: any page can make itself one whose origin is 'null', with a sandboxed frame")
        case .subdomains(_, let suffix):
            guard !suffix.dropFirst().contains(".") else { return }
            reader.diagnostics.warning(
                .configInsecure, at: origin.location,
                "origins: pages of every domain below \(quoted(String(suffix.dropFirst()))) may use the route, whoever's"
            )
        case .exact: return
        }
    }

    /// Records an error for each header that both `cors` and `headers.response` decide about.
    static func check(_ headers: ConfigurationNode?, _ reader: inout ConfigurationReader) {
        let response = headers?["response"]
        let set = response?["set"]?.entries?.map(\.key) ?? []
        let removed = response?["remove"]?.elements?.compactMap { try? Located<String>(decoding: $0) } ?? []
        for name in set + removed where name.value.lowercased().hasPrefix("access-control-") {
            reader.error(
                .configConflictingKeys, at: name.location,
                "header \(quoted(name.value)) is set by 'cors' of \(reader.title)")
        }
    }
}

/// The name of a header that is only listed.
private struct ListedFieldName: ConfigurationValue {
    let text: String

    init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        text = try node.text()
        guard text != "*" else {
            throw node.error(.configBadHeader, "'*' is not supported: list the headers")
        }
        guard FieldNameSyntax.isValid(text) else {
            throw node.error(.configBadHeader, "\(quoted(text)) is not a header name")
        }
    }
}

/// An entry of `cors.origins`.
private struct CrossOriginPattern: ConfigurationValue {
    let origin: CrossOriginConfiguration.Origin

    init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        // YAML has a null of its own.
        if node.isNull {
            origin = .null
            return
        }
        let written = try node.text()
        switch written {
        case "*": origin = .any
        case "null": origin = .null
        case _ where written.contains("*"): origin = try Self.subdomains(written, node)
        default: origin = .exact(try PageOrigin(decoding: node).text)
        }
    }

    private static func subdomains(
        _ written: String, _ node: ConfigurationNode
    ) throws(ConfigurationError) -> CrossOriginConfiguration.Origin {
        for prefix in ["https://", "http://"] where written.hasPrefix("\(prefix)*.") {
            let domain = String(written.dropFirst(prefix.count + 2))
            guard !domain.contains(where: "*/?:[]".contains), let url = URLText("\(prefix)\(domain)") else { break }
            return .subdomains(prefix: prefix, suffix: ".\(url.host)")
        }
        throw node.error(
            .configBadURL,
            "\(quoted(written)) is not an origin such as https://*.example.com, with '*.' before a domain and no port")
    }
}
