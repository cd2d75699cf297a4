/// One entry of `providers:`: its name, its kind, and the rest of the block for the plugin to decode.
@frozen package struct ProviderConfiguration: Sendable {
    package var name: Located<String>
    package var kind: Located<String>
    /// How many calls run and wait at a time; `nil` without `bulkhead`.
    package var bulkhead: BulkheadConfiguration?
    package var label: String?
    package var icon: Located<FilePath>?
    /// How it reaches its issuer, where that differs from `outbound:`.
    package var outbound = OutboundConfiguration()
    /// The block with positions, with the keys of `outbound:`.
    package var whole: ConfigurationNode

    /// The block with positions, without the keys that every provider has and its kind has not.
    /// - Parameter grammar: of its kind, which may mean another thing by a name.
    package func block(_ grammar: ConfigurationGrammar?) -> ConfigurationNode {
        let others = Set(OutboundConfiguration.table.keyNames).subtracting(grammar?.keyNames ?? [])
        let entries = (whole.entries ?? []).filter { !others.contains($0.key.value) }
        return ConfigurationNode(.mapping(entries), at: whole.location)
    }

    /// The keys that every provider has, besides `kind`.
    private static let keys: [ConfigurationKey<Self>] = [
        .block("bulkhead", \.bulkhead, "Keeps the provider's calls apart from others."),
        .key(
            "label", \.label, where: .label, "What pages call the provider, up to 64 characters; its name if absent."),
        .key(
            "icon_file", \.icon, "What pages show on its button: an SVG, PNG, JPEG or WebP file, up to 256 KiB."),
    ]

    private static let table = ConfigurationGrammar(
        keys, of: Self(name: .unread, kind: .unread, whole: ConfigurationNode(.mapping([]), at: .none)))

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

/// `providers.X.bulkhead:`.
package struct BulkheadConfiguration: KeyedBlock, Equatable {
    package var concurrency = 64
    package var queue = 256

    static let keys: [ConfigurationKey<Self>] = [
        .key("concurrency", \.concurrency, in: 1...1024, "How many calls run at a time."),
        .key("queue", \.queue, in: 0...65_536, "How many calls wait for one that runs."),
    ]
}

/// One entry of `plugins:`.
@frozen package struct PluginConfiguration: Sendable {
    package var path = Located(FilePath(""), at: .none)
}

extension PluginConfiguration: KeyedBlock {
    static let keys: [ConfigurationKey<Self>] = [.required("path", \.path, "The shared library.")]
}

/// The kinds of providers that a configuration may name.
package struct AvailableKinds {
    /// Loads libraries, records why some cannot be used, and returns all kinds that are available then.
    package typealias Loader = ([PluginConfiguration], inout Diagnostics) -> [String]

    let compiledIn: [String]
    let loadPlugins: Loader?

    /// All kinds; `nil` if they are not known, because libraries were not loaded.
    func known(with plugins: [PluginConfiguration], _ diagnostics: inout Diagnostics) -> [String]? {
        guard !plugins.isEmpty else { return compiledIn }
        guard let loadPlugins else { return nil }
        var found = Diagnostics()
        let kinds = loadPlugins(plugins, &found)
        diagnostics.add(found)
        // That a kind is unknown would only be a consequence.
        return found.hasErrors ? nil : kinds
    }
}
