/// `cors:` of a route: which pages of other origins may use it (CORS).
@frozen package struct CrossOriginConfiguration: KeyedBlock, Equatable {
    /// An entry of `origins`.
    @frozen package enum Origin: Sendable, Equatable {
        /// Every origin.
        case any
        /// `null`, which stands for sandboxed pages, local files and others without an origin.
        case null
        /// One origin, as browsers write it.
        case exact(String)
        /// Every origin of the scheme whose host is below a domain, at the default port.
        ///
        /// - Parameters:
        ///   - prefix: `https://` or `http://`.
        ///   - suffix: the domain with a dot before it, in lower case.
        case subdomains(prefix: String, suffix: String)
    }

    package var origins: [Origin]
    package var methods = ["GET", "HEAD", "POST"]
    package var headers: [String] = []
    package var exposed: [String] = []
    package var allowsCredentials = false
    package var maximumAge: Duration?

    package init(origins: [Origin]) { self.origins = origins }

    init() { self.init(origins: []) }

    static let keys: [ConfigurationKey<Self>] = [
        .required(
            "origins", \.origins, as: NonEmpty<CrossOriginPattern>.self, endsBlock: true,
            "The origins whose pages may use the route: exact ones, of any scheme, `https://*.example.com` for those"
                + " below a domain, `*` for all, `null` for pages without one."),
        .key("methods", \.methods, as: NonEmpty<MethodName>.self, "The methods that pages may use."),
        .key(
            "headers", \.headers, as: [ListedFieldName].self,
            "The request headers that pages may set, such as `authorization`."),
        .key("expose", \.exposed, as: [ListedFieldName].self, "The response headers that pages may read."),
        .key(
            "credentials", \.allowsCredentials,
            "Whether pages may use cookies and other credentials that browsers send by themselves."),
        .key(
            "max_age", \.maximumAge, in: .zero ... .seconds(86_400),
            "How long browsers may keep the response to a preflight, up to 1d; a few seconds if absent."),
        .check(always: true) { $1.checkWholeSeconds($0.maximumAge ?? .zero, of: "max_age") },
        .check { block, reader in
            for (origin, node) in zip(block.origins, reader.node("origins")?.elements ?? []) {
                block.check(origin, at: node.location, &reader)
            }
        },
    ]

    private func check(_ origin: Origin, at location: SourceLocation, _ reader: inout ConfigurationReader) {
        switch origin {
        case .any:
            guard allowsCredentials else { return }
            reader.reject(
                "credentials", .configConflictingKeys,
                "every page could act in the name of its visitors: list the origins instead of '*'")
        case .null:
            reader.diagnostics.warning(
                .configInsecure, at: location,
                "origins: any page can make itself one whose origin is 'null', with a sandboxed frame")
        case .subdomains(_, let suffix):
            guard !suffix.dropFirst().contains(".") else { return }
            reader.diagnostics.warning(
                .configInsecure, at: location,
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
private struct ListedFieldName: TextSpelling {
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
private struct CrossOriginPattern: ConfigurationValue, Spelling {
    let content: CrossOriginConfiguration.Origin

    init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        // YAML has a null of its own.
        if node.isNull {
            content = .null
            return
        }
        let written = try node.text()
        switch written {
        case "*": content = .any
        case "null": content = .null
        case _ where written.contains("*"): content = try Self.subdomains(written, node)
        default: content = .exact(try PageOrigin(decoding: node).text)
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
