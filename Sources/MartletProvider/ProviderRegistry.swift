package import MartletConfig

/// The available provider kinds: an explicit list, filled once at startup, and by plugins in shared libraries.
public struct ProviderRegistry: Sendable {
    private var factories: [ProviderKind: ProviderFactory] = [:]
    /// The kinds that were registered although they existed already; the first stays.
    package private(set) var conflicts: [ProviderKind] = []
    /// Loads the libraries of `plugins:`, with their positions, that are not loaded yet, and adds the providers of all of
    /// them; errors say why a library cannot be used. `nil` in programs without libraries.
    package var loadLibraries: (@Sendable ([Located<FilePath>], inout ProviderRegistry, inout Diagnostics) -> Void)?

    public init() {}

    /// Adds a plugin. A kind that exists already is not replaced, and is an error of the library that registered it.
    public mutating func register<Plugin: Provider>(_ plugin: Plugin.Type) {
        guard factories[Plugin.kind] == nil else { return conflicts.append(Plugin.kind) }
        factories[Plugin.kind] = ProviderFactory(plugin)
    }

    /// The registered kinds, sorted.
    public var kinds: [ProviderKind] { factories.keys.sorted { $0.rawValue < $1.rawValue } }

    /// The factory of a kind; `nil` if no plugin provides it.
    package func factory(for kind: ProviderKind) -> ProviderFactory? { factories[kind] }

    /// Adds the kinds of another registry.
    /// - Returns: those that existed already, which are not replaced; sorted.
    package mutating func add(_ other: ProviderRegistry) -> [ProviderKind] {
        let existing = other.kinds.filter { factories[$0] != nil }
        for (kind, factory) in other.factories where factories[kind] == nil {
            factories[kind] = factory
            factories[kind]?.isFromLibrary = true
        }
        return existing
    }

    /// Loads the libraries of `plugins:`, and adds their providers.
    /// - Returns: all kinds.
    package mutating func load(_ plugins: [PluginConfiguration], into diagnostics: inout Diagnostics) -> [String] {
        if let loadLibraries {
            loadLibraries(plugins.map(\.path), &self, &diagnostics)
        } else {
            for plugin in plugins {
                diagnostics.error(.configNotSupported, at: plugin.path.location, "plugins: not supported here")
            }
        }
        return kinds.map(\.rawValue)
    }
}
