extension ProviderConfiguration {
    /// The keys that every provider has, besides `kind`.
    package static let sharedKeys: [ConfigurationGrammar.Key] = [
        .optional("bulkhead", .block(of: BulkheadConfiguration.self), "Keeps the provider's calls apart from others."),
        .optional("label", .text, "What pages call the provider, up to 64 characters; its name if absent."),
        .optional("icon_file", .path, "What pages show on its button: an SVG, PNG, JPEG or WebP file, up to 256 KiB."),
    ]

    /// Those of them that a kind has not given another meaning.
    package static func sharedKeys(besides own: ConfigurationGrammar) -> [ConfigurationGrammar.Key] {
        (sharedKeys + OutboundConfiguration.table.keys).filter { !own.keyNames.contains($0.name) }
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
            label = reader.value("label") { node throws(ConfigurationError) in try Located(decoding: node, .label) }
            icon = reader.optional("icon_file")
            try reader.read(OutboundConfiguration.keys, into: &outbound)
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

extension BulkheadConfiguration: KeyedBlock {
    package static let keys: [ConfigurationKey<Self>] = [
        .key("concurrency", \.concurrency, in: 1...1024, "How many calls run at a time."),
        .key("queue", \.queue, in: 0...65_536, "How many calls wait for one that runs."),
    ]
}
