package import MartletJSON

/// `headers:` of a route.
struct RouteHeaders: KeyedBlock {
    var set: [HeaderConfiguration]?
    var remove: [String] = []
    var response = ResponseHeaderConfiguration()

    static let keys: [ConfigurationKey<Self>] = [
        .row(
            .optional(
                "set", .map(.block(of: HeaderConfiguration.Block.self)),
                "Headers set from the caller's identity, in place of `X-Auth-Subject`, `X-Auth-Provider` and"
                    + " `X-Auth-Email`, and constant ones.")),
        .key("remove", \.remove, as: [FoldedHeaderName].self, "Client headers that are not forwarded to the upstream."),
        .block("response", \.response, default: nil, "Headers of the response that the client gets."),
        .check { if $1.has("set") { $0.readSet(&$1) } },
    ]

    private mutating func readSet(_ reader: inout ConfigurationReader) {
        let removed = (reader.given("remove")?.elements ?? []).compactMap { try? Located<HeaderName>(decoding: $0) }
        let removedNames = Dictionary(removed.map { ($0.value.folded, $0) }) { first, _ in first }
        var names: [String: String] = [:]
        var headers: [HeaderConfiguration] = []
        for (name, block) in reader.namedBlocks("set", noun: "header", as: HeaderConfiguration.Block.self) {
            guard let header = Self.checked(name, &names, &reader) else { continue }
            if let twice = removedNames[header.folded] {
                reader.error(
                    .configConflictingKeys, at: twice.location,
                    "header \(quoted(twice.value.text)) is both set and removed")
            }
            guard let value = block.value else { continue }
            headers.append(
                HeaderConfiguration(
                    name: name, value: value, encoding: block.encoding, join: block.join, fallback: block.fallback))
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

/// One entry of `headers.set`.
@frozen package struct HeaderConfiguration: Sendable {
    /// Where a header's value comes from.
    @frozen package enum Value: Sendable {
        case attribute(PrincipalAttribute)
        case claim(ClaimPath)
        /// The same for every request; it says nothing about the caller.
        case constant(String)
    }

    /// How a value is encoded for a header.
    @frozen package enum Encoding: String, ConfigurationChoice { case percent, base64url, rfc8187, ascii, json }

    /// As written in the file.
    package var name: Located<String>
    package var value: Value
    package var encoding: Encoding
    package var join: String?
    package var fallback: String?
}

/// The values of `attribute:`.
@frozen package enum PrincipalAttribute: String, ConfigurationChoice {
    case subject, provider, issuer, route
    case providerSubject = "provider_subject"
    case sessionID = "session_id"
    case authTime = "auth_time"
    case expiresAt = "expires_at"
    /// The address that is proved to be the caller's.
    case email
}

extension HeaderConfiguration {
    /// The keys of one entry of `headers.set`; its name is the entry's key.
    struct Block: KeyedBlock {
        private var attribute: PrincipalAttribute?
        private var claim: ClaimPath?
        private var constant: String?
        private(set) var encoding = Encoding.percent
        private(set) var join: String?
        private(set) var fallback: String?

        /// `nil` only before it was read.
        var value: Value? {
            attribute.map(Value.attribute) ?? claim.map { .claim($0) } ?? constant.map { .constant($0) }
        }

        private static let sources = ["attribute", "claim", "value"]

        static var grammar: ConfigurationGrammar? { table.withOneOf(sources) }

        static let keys: [ConfigurationKey<Self>] = [
            .key("attribute", \.attribute, "An attribute of the caller."),
            .key("claim", \.claim, "A claim of the caller, or the names on the way to a member of it."),
            .key(
                "value", \.constant, as: FieldValueText?.self,
                "A constant of printable ASCII, for every request of the route."),
            .key("encode", \.encoding, "How characters other than printable ASCII are encoded."),
            .key("join", \.join, where: .printable, "The separator between the elements of a list."),
            .key(
                "default", \.fallback, where: .printable,
                "The value if the caller has none; without it the header is omitted."),
            .check { block, reader throws(ConfigurationError) in
                // Only claims have a form of their own in JSON.
                for key in ["attribute", "join"] where block.encoding == .json {
                    reader.reject(key, .configConflictingKeys, "cannot be used with 'encode: json'")
                }
                for key in ["encode", "join", "default"] where reader.has("value") {
                    reader.reject(key, .configConflictingKeys, "has no effect on a constant 'value'")
                }
                try checkSources(&reader)
                guard block.value != nil else { throw .alreadyReported }
            },
        ]

        private static func checkSources(_ reader: inout ConfigurationReader) throws(ConfigurationError) {
            let given = sources.filter { reader.has($0) }
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
        }
    }
}

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

/// A whole header value.
struct FieldValueText: TextSpelling {
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

extension TextRule {
    /// Part of a header value.
    fileprivate static let printable = TextRule(
        .configBadHeader, { $0.utf8.allSatisfy { (0x20...0x7E).contains($0) } },
        { _ in "must be printable ASCII, because it is written to a header unchanged" })
}
