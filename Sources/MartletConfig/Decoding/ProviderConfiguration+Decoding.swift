extension ProviderConfiguration {
    /// The keys that every provider has, besides `kind`.
    package static let sharedKeys: [ConfigurationGrammar.Key] = [
        .optional("bulkhead", .block(of: BulkheadConfiguration.self), "Keeps the provider's calls apart from others."),
        .optional("label", .text, "What pages call the provider, up to 64 characters; its name if absent."),
        .optional(
            "icon_file", .path, "What pages show on its button: an SVG, PNG, JPEG or WebP file, up to 256 KiB."),
    ]
    private static let maximumLabel = 64

    /// Those of them that a kind has not given another meaning.
    package static func sharedKeys(besides own: ConfigurationGrammar) -> [ConfigurationGrammar.Key] {
        (sharedKeys + OutboundConfiguration.keys).filter { !own.keyNames.contains($0.name) }
    }

    /// Reads the keys that every provider has; the remaining ones are decoded by the plugin.
    ///
    /// - Parameter knownKinds: the kinds of the available plugins; `nil` if they are not known.
    static func read(
        _ entry: ConfigurationNode.Entry, knownKinds: [String]?, into diagnostics: inout Diagnostics
    ) -> ProviderConfiguration? {
        let title = "provider \(quoted(entry.key.value))"
        let kind: Located<String>
        let bulkhead: BulkheadConfiguration?
        let label: Located<String>?
        let icon: Located<FilePath>?
        var outbound = OutboundConfiguration()
        do {
            var reader = try ConfigurationReader(entry.value, title: title)
            kind = try reader.required("kind")
            bulkhead = reader.block("bulkhead")
            label = reader.optional("label")
            icon = reader.optional("icon_file")
            outbound.read(&reader)
            if let label, !(1...maximumLabel).contains(label.value.unicodeScalars.count) {
                reader.error(.configBadValue, at: label.location, "label: must have 1 to \(maximumLabel) characters")
            }
            diagnostics.add(reader.diagnostics)
        } catch {
            diagnostics.add(error)
            return nil
        }
        if let knownKinds, !knownKinds.contains(kind.value) {
            report(kind, knownKinds, title, into: &diagnostics)
            return nil
        }
        let shared = ["kind"] + sharedKeys.map(\.name)
        let rest = (entry.value.entries ?? []).filter { !shared.contains($0.key.value) }
        return ProviderConfiguration(
            name: entry.key, kind: kind, bulkhead: bulkhead, label: label?.value, icon: icon, outbound: outbound,
            whole: ConfigurationNode(.mapping(rest), at: entry.value.location))
    }

    private static func report(
        _ kind: Located<String>, _ known: [String], _ title: String, into diagnostics: inout Diagnostics
    ) {
        diagnostics.error(
            .configUnknownKind, at: kind.location,
            "\(title) has kind \(quoted(kind.value)), which no plugin provides"
                + Suggestion.phrase(for: kind.value, among: known)
                + (known.isEmpty ? "" : "; the kinds are \(known.sorted().joined(separator: ", "))")
        )
    }
}

extension BulkheadConfiguration: ConfigurationDecodable {
    package static var grammar: ConfigurationGrammar? {
        .init([
            .optional("concurrency", .integer(1...1024), default: "64", "How many calls run at a time."),
            .optional("queue", .integer(0...65_536), default: "256", "How many calls wait for one that runs."),
        ])
    }

    package init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        concurrency = reader.optional("concurrency", default: 64, in: 1...1024)
        queue = reader.optional("queue", default: 256, in: 0...65_536)
    }
}
