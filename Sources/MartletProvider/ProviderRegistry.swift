/// The available provider kinds: an explicit list, filled once at startup.
public struct ProviderRegistry: Sendable {
    private var factories: [ProviderKind: ProviderFactory] = [:]

    public init() {}

    /// Adds a plugin. Traps if its kind is already registered.
    public mutating func register<Plugin: Provider>(_ plugin: Plugin.Type) {
        precondition(factories[Plugin.kind] == nil, "provider kind '\(Plugin.kind)' is registered twice")
        factories[Plugin.kind] = ProviderFactory(plugin)
    }

    /// The registered kinds, sorted.
    public var kinds: [ProviderKind] { factories.keys.sorted { $0.rawValue < $1.rawValue } }

    /// The factory of a kind; `nil` if no plugin provides it.
    package func factory(for kind: ProviderKind) -> ProviderFactory? { factories[kind] }
}
