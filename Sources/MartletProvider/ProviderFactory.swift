package import MartletConfig

/// Creates providers of one kind from their configuration blocks.
@frozen package struct ProviderFactory: Sendable {
    package let kind: ProviderKind
    /// The keys of its block, if the plugin defines a grammar.
    package let grammar: ConfigurationGrammar?
    /// Whether its code is in a shared library: its calls are kept apart by default.
    package var isFromLibrary = false
    private let prepareBlock: @Sendable (ConfigurationNode, String, inout Diagnostics) -> PreparedProvider?

    init<Plugin: Provider>(_ plugin: Plugin.Type) {
        kind = Plugin.kind
        grammar = Plugin.Configuration.grammar
        prepareBlock = { block, name, diagnostics in
            let title = "provider '\(name)'"
            guard let configuration = block.decode(Plugin.Configuration.self, title: title, into: &diagnostics) else {
                return nil
            }
            var found = Diagnostics()
            Plugin.validate(configuration, into: &found)
            diagnostics.add(found)
            return found.hasErrors ? nil : PreparedProvider(plugin, name: name, configuration: configuration)
        }
    }

    /// Decodes and validates a block strictly, without I/O.
    ///
    /// - Parameters:
    ///   - block: the provider's block, without `kind`.
    ///   - name: the provider's name.
    ///   - diagnostics: receives all errors and warnings.
    /// - Returns: `nil` if the block has errors.
    package func prepare(
        _ block: ConfigurationNode, name: String, into diagnostics: inout Diagnostics
    ) -> PreparedProvider? {
        prepareBlock(block, name, &diagnostics)
    }
}

/// A provider whose configuration is valid but which is not built yet.
@frozen package struct PreparedProvider: Sendable {
    package let name: String
    package let facts: ProviderFacts
    /// What its calls are limited to; `nil` if they run beside others.
    package var bulkhead: BulkheadLimits?
    private let buildProvider:
        @Sendable (ProviderContext, Bulkhead?, ProviderHandle?) throws(ConfigurationError) -> ProviderHandle

    init<Plugin: Provider>(_ plugin: Plugin.Type, name: String, configuration: Plugin.Configuration) {
        self.name = name
        facts = Plugin.facts(configuration)
        buildProvider = { (context, bulkhead, previous) throws(ConfigurationError) in
            ProviderHandle(
                try Plugin(configuration, context: context), name: name, bulkhead: bulkhead, replacing: previous)
        }
    }

    /// Builds the provider, without I/O and without starting it.
    /// - Parameter previous: the same provider of the configuration before: its calls still count, and its counters go on.
    package func build(
        _ context: ProviderContext, replacing previous: ProviderHandle? = nil
    ) throws(ConfigurationError) -> ProviderHandle {
        guard let bulkhead else { return try buildProvider(context, nil, previous) }
        let known = previous?.bulkhead.flatMap { $0.limits == bulkhead ? $0 : nil }
        return try buildProvider(context, known ?? Bulkhead(name, bulkhead, clock: context.clock), previous)
    }
}
