private import MartletCore

/// `headers.response:` of a route.
@frozen package struct ResponseHeaderConfiguration: KeyedBlock {
    /// A header with its value, as written.
    @frozen package struct Field: Sendable, Equatable {
        package var name: String
        package var value: String

        package init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }

    package var set: [Field] = []
    /// Lower-case names.
    package var remove: [String] = []

    package init() {}

    package var isEmpty: Bool { self.set.isEmpty && remove.isEmpty }

    /// Names that belong to the gateway in responses, beyond those that no message may have set; in lower case.
    private static let own = ["date", "set-cookie", "alt-svc"]

    static let keys: [ConfigurationKey<Self>] = [
        .row(
            .optional(
                "set", .map(.text),
                "Headers with constant values, in place of the upstream's; also of responses of the gateway itself.")),
        .key("remove", \.remove, as: [FoldedHeaderName].self, "The upstream's headers that are removed."),
        .check { $0.readSet(&$1) },
    ]

    private mutating func readSet(_ reader: inout ConfigurationReader) {
        guard let node = reader.node("set") else { return }
        guard let entries = node.entries else {
            reader.diagnostics.add(node.mismatch("set: ", mustBe: "a block of names"))
            return
        }
        var names: Set<String> = []
        for entry in entries {
            do throws(ConfigurationError) {
                let header = try HeaderName(entry.key)
                try Self.check(header, at: entry.key.location, &names)
                if remove.contains(header.lowercased) {
                    throw ConfigurationError(
                        .configConflictingKeys, at: entry.key.location,
                        "header \(quoted(header.text)) is both set and removed")
                }
                let text = try reader.labeled(header.text) { () throws(ConfigurationError) in
                    try FieldValueText(decoding: entry.value).text
                }
                set.append(.init(name: header.text, value: text))
            } catch {
                reader.diagnostics.add(error)
            }
        }
    }

    private static func check(
        _ header: HeaderName, at location: SourceLocation, _ names: inout Set<String>
    ) throws(ConfigurationError) {
        guard !own.contains(header.lowercased) else {
            throw ConfigurationError(
                .configBadHeader, at: location, "\(quoted(header.text)) is managed by the gateway and cannot be set")
        }
        guard names.insert(header.lowercased).inserted else {
            throw ConfigurationError(
                .configDuplicateName, at: location, "header \(quoted(header.text)) is set twice")
        }
    }
}
