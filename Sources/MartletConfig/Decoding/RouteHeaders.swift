internal import MartletJSON

/// `headers:` of a route.
struct RouteHeaders: ConfigurationDecodable {
    var set: [HeaderConfiguration]?
    var remove: [String] = []
    var response = ResponseHeaderConfiguration()

    init() {}

    static var grammar: ConfigurationGrammar? {
        .init([
            .optional(
                "set", .map(.block(of: HeaderConfiguration.Block.self)),
                "Headers set from the caller's identity, in place of `X-Auth-Subject`, `X-Auth-Provider` and"
                    + " `X-Auth-Email`, and constant ones."),
            .optional(
                "remove", .list(.text, nonEmpty: false), default: "[]",
                "Client headers that are not forwarded to the upstream."),
            .optional(
                "response", .block(of: RouteResponseHeaders.self), "Headers of the response that the client gets."),
        ])
    }

    init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        response = reader.block("response", as: RouteResponseHeaders.self)?.value ?? response
        let removed = reader.optional("remove", as: [Located<HeaderName>].self) ?? []
        remove = removed.map(\.value.lowercased)
        let removedNames = Dictionary(removed.map { ($0.value.folded, $0) }) { first, _ in first }
        guard reader.has("set") else { return }
        var names: [String: String] = [:]
        var headers: [HeaderConfiguration] = []
        for (name, block) in reader.namedBlocks("set", noun: "header", as: HeaderConfiguration.Block.self) {
            guard let header = Self.checked(name, &names, &reader) else { continue }
            if let twice = removedNames[header.folded] {
                reader.error(
                    .configConflictingKeys, at: twice.location,
                    "header \(quoted(twice.value.text)) is both set and removed")
            }
            headers.append(
                HeaderConfiguration(
                    name: name, value: block.value, encoding: block.encoding, join: block.join, fallback: block.fallback
                ))
        }
        set = headers
    }

    /// The header name, if it is allowed and not yet set in any spelling; errors are recorded.
    private static func checked(
        _ name: Located<String>, _ names: inout [String: String], _ reader: inout ConfigurationReader
    ) -> HeaderName? {
        do {
            let header = try HeaderName(name)
            if let first = names[header.folded] {
                reader.error(
                    .configDuplicateName, at: name.location,
                    "header \(quoted(name.value)) is already set as \(quoted(first)): names are compared ignoring case, with '_' equal to '-'"
                )
            }
            names[header.folded] = name.value
            return header
        } catch {
            reader.diagnostics.add(error)
            return nil
        }
    }
}

extension HeaderConfiguration.Encoding: ConfigurationValue {}
extension PrincipalAttribute: ConfigurationValue {}

extension HeaderConfiguration {
    /// Warns of addresses that may not be verified: an upstream that takes one for its user's would let in whoever
    /// wrote it into a profile.
    static func warnAboutAddresses(
        in headers: [HeaderConfiguration], where conditions: [ConditionConfiguration],
        _ diagnostics: inout Diagnostics
    ) {
        guard !conditions.contains(where: \.requiresVerifiedAddress) else { return }
        for header in headers {
            guard case .claim("email") = header.value else { continue }
            diagnostics.warning(
                .configInsecure, at: header.name.location,
                "'\(header.name.value)' may have an address that is not verified: write { attribute: email }, or "
                    + "authorize: [{ claim: email_verified, equals: true }]")
        }
    }
}

extension ConditionConfiguration {
    /// Whether only callers pass whose address is verified.
    fileprivate var requiresVerifiedAddress: Bool {
        switch self {
        case .any(let conditions): !conditions.isEmpty && conditions.allSatisfy(\.requiresVerifiedAddress)
        case .claim("email_verified", .equals(let value), inverted: false, orAbsent: false): value == .bool(true)
        case .claim("email_verified", .isIn(let values), inverted: false, orAbsent: false): values == [.bool(true)]
        case .claim: false
        }
    }
}

extension HeaderConfiguration {
    /// The keys of one entry of `headers.set`; its name is the entry's key.
    struct Block: ConfigurationDecodable {
        let value: Value
        let encoding: Encoding
        let join: String?
        let fallback: String?

        static var grammar: ConfigurationGrammar? {
            ConfigurationGrammar([
                .optional(
                    "attribute", .choice(PrincipalAttribute.allCases.map(\.rawValue)),
                    "An attribute of the caller."),
                .optional("claim", .claim, "A claim of the caller, or the names on the way to a member of it."),
                .optional("value", .text, "A constant of printable ASCII, for every request of the route."),
                .optional(
                    "encode", .choice(Encoding.allCases.map(\.rawValue)), default: "percent",
                    "How characters other than printable ASCII are encoded."),
                .optional("join", .text, "The separator between the elements of a list."),
                .optional("default", .text, "The value if the caller has none; without it the header is omitted."),
            ])
            .withOneOf(["attribute", "claim", "value"])
        }

        init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
            encoding = reader.optional("encode", default: .percent)
            join = reader.optional("join", as: PrintableText.self)?.text
            fallback = reader.optional("default", as: PrintableText.self)?.text
            let attribute: PrincipalAttribute? = reader.optional("attribute")
            let claim: ClaimPath? = reader.optional("claim")
            if encoding == .json { Self.checkJSON(&reader) }
            let constant = Self.constant(&reader)
            let given = ["attribute", "claim", "value"].filter { reader.has($0) }
            if given.isEmpty {
                throw ConfigurationError(
                    .configMissingKey, at: reader.location,
                    "missing key 'attribute', 'claim' or 'value' in \(reader.title)")
            }
            if given.count > 1 {
                throw ConfigurationError(
                    .configConflictingKeys, at: reader.location,
                    "\(reader.title) has both '\(given[0])' and '\(given[1])'")
            }
            let value =
                attribute.map(Value.attribute) ?? claim.map { .claim($0) } ?? constant.map { .constant($0) }
            guard let value else { throw .alreadyReported }
            self.value = value
        }

        /// Only claims have a form of their own in JSON; errors are recorded.
        private static func checkJSON(_ reader: inout ConfigurationReader) {
            for key in ["attribute", "join"] {
                guard let node = reader.node(key) else { continue }
                reader.error(
                    .configConflictingKeys, at: node.location, "\(key): cannot be used with 'encode: json'")
            }
        }

        /// Reads `value`, which is written as it stands; errors are recorded.
        private static func constant(_ reader: inout ConfigurationReader) -> String? {
            let constant = reader.optional("value", as: FieldValueText.self)
            guard reader.has("value") else { return nil }
            for key in ["encode", "join", "default"] {
                guard let node = reader.node(key) else { continue }
                reader.error(
                    .configConflictingKeys, at: node.location, "\(key): has no effect on a constant 'value'")
            }
            return constant?.text
        }
    }
}

/// A whole header value.
struct FieldValueText: ConfigurationValue {
    private static let maximumBytes = 4096

    let text: String

    init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        text = try node.text()
        let isVisible = text.utf8.allSatisfy { (0x20...0x7E).contains($0) }
        guard isVisible, !text.isEmpty, text.first != " ", text.last != " ", text.utf8.count <= Self.maximumBytes else {
            throw node.error(
                .configBadHeader,
                "must be 1 to \(Self.maximumBytes) printable ASCII characters without a space at either end")
        }
    }
}

/// Part of a header value.
private struct PrintableText: ConfigurationValue {
    let text: String

    init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        text = try node.text()
        guard text.utf8.allSatisfy({ (0x20...0x7E).contains($0) }) else {
            throw node.error(.configBadHeader, "must be printable ASCII, because it is written to a header unchanged")
        }
    }
}
