/// One entry of `plugins:`.
@frozen package struct PluginConfiguration: Sendable {
    /// The shared library.
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
