extension ProviderConfiguration {
    /// The keys that every provider has, besides `kind`.
    private static let keys: [ConfigurationKey<Self>] = [
        .block("bulkhead", \.bulkhead, "Keeps the provider's calls apart from others."),
        .key(
            "label", \.label, where: .label, "What pages call the provider, up to 64 characters; its name if absent."),
        .key(
            "icon_file", \.icon, "What pages show on its button: an SVG, PNG, JPEG or WebP file, up to 256 KiB."),
    ]

    private static let table: ConfigurationGrammar = {
        let name = Located("", at: .none)
        return ConfigurationGrammar(
            keys, of: Self(name: name, kind: name, whole: ConfigurationNode(.mapping([]), at: .none)))
    }()

    /// Those of them that a kind has not given another meaning.
    package static func sharedKeys(besides own: ConfigurationGrammar) -> [ConfigurationGrammar.Key] {
        (table.keys + OutboundConfiguration.table.keys).filter { !own.keyNames.contains($0.name) }
    }

    /// Reads the keys that every provider has; the remaining ones are decoded by the plugin.
    ///
    /// - Parameter knownKinds: the kinds of the available plugins; `nil` if they are not known.
    static func read(
        _ entry: ConfigurationNode.Entry, knownKinds: [String]?, into diagnostics: inout Diagnostics
    ) -> ProviderConfiguration? {
        let title = "provider \(quoted(entry.key.value))"
        let others = (entry.value.entries ?? []).filter { !(["kind"] + table.keyNames).contains($0.key.value) }
        let rest = ConfigurationNode(.mapping(others), at: entry.value.location)
        do {
            var reader = try ConfigurationReader(entry.value, title: title)
            var provider = ProviderConfiguration(name: entry.key, kind: try reader.required("kind"), whole: rest)
            try reader.read(keys, into: &provider)
            try reader.read(OutboundConfiguration.keys, into: &provider.outbound)
            diagnostics.add(reader.diagnostics)
            guard let knownKinds, !knownKinds.contains(provider.kind.value) else { return provider }
            report(provider.kind, knownKinds, title, into: &diagnostics)
        } catch {
            diagnostics.add(error)
        }
        return nil
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
    static let keys: [ConfigurationKey<Self>] = [
        .key("concurrency", \.concurrency, in: 1...1024, "How many calls run at a time."),
        .key("queue", \.queue, in: 0...65_536, "How many calls wait for one that runs."),
    ]
}
