/// The kinds of provider that there are: an explicit list, filled once at start.
public struct ProviderRegistry: Sendable {
    private var factories: [ProviderKind: ProviderFactory] = [:]

    public init() {}

    /// Adds a plugin.
    ///
    /// Two of the same kind are a mistake of whoever wrote the list, and trap.
    public mutating func register<Plugin: Provider>(_ plugin: Plugin.Type) {
        precondition(factories[Plugin.kind] == nil, "two providers of the kind '\(Plugin.kind)'")
        factories[Plugin.kind] = ProviderFactory(plugin)
    }

    /// The registered kinds, sorted.
    public var kinds: [ProviderKind] { factories.keys.sorted { $0.rawValue < $1.rawValue } }

    /// How to make providers of a kind; `nil` if no plugin has it.
    package func factory(for kind: ProviderKind) -> ProviderFactory? { factories[kind] }
}
