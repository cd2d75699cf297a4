extension ProviderConfiguration {
    /// Reads `kind` of a provider's block; the remaining keys are decoded by the plugin.
    ///
    /// - Parameter knownKinds: the kinds of the available plugins; `nil` if they are not known.
    static func read(
        _ entry: ConfigurationNode.Entry, knownKinds: [String]?, into diagnostics: inout Diagnostics
    ) -> ProviderConfiguration? {
        let title = "provider \(quoted(entry.key.value))"
        let kind: Located<String>
        do {
            var reader = try ConfigurationReader(entry.value, title: title)
            kind = try reader.required("kind")
        } catch {
            diagnostics.add(error)
            return nil
        }
        if let knownKinds, !knownKinds.contains(kind.value) {
            report(kind, knownKinds, title, into: &diagnostics)
            return nil
        }
        let rest = (entry.value.entries ?? []).filter { $0.key.value != "kind" }
        return ProviderConfiguration(
            name: entry.key, kind: kind, block: ConfigurationNode(.mapping(rest), at: entry.value.location))
    }

    private static func report(
        _ kind: Located<String>, _ known: [String], _ title: String, into diagnostics: inout Diagnostics
    ) {
        diagnostics.error(
            .configUnknownKind, at: kind.location,
            "\(title) has kind \(quoted(kind.value)), which no plugin provides\(Suggestion.phrase(for: kind.value, among: known))"
        )
    }
}
