package import MartletConfig

/// How providers of one kind are made from their blocks.
package struct ProviderFactory: Sendable {
    package let kind: ProviderKind
    /// The keys of its block, where the plugin names them.
    package let grammar: ConfigurationGrammar?
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

    /// Decodes a block strictly and checks it across its fields.
    ///
    /// Pure: no I/O.
    ///
    /// - Parameters:
    ///   - block: what stands under the provider's name, without `kind`.
    ///   - name: the provider's name.
    ///   - diagnostics: where everything that is wrong is recorded.
    /// - Returns: `nil` if the block cannot be used.
    package func prepare(
        _ block: ConfigurationNode, name: String, into diagnostics: inout Diagnostics
    ) -> PreparedProvider? {
        prepareBlock(block, name, &diagnostics)
    }
}

/// A provider whose configuration is good but which is not built yet.
package struct PreparedProvider: Sendable {
    package let name: String
    private let buildProvider: @Sendable (ProviderContext) throws(ConfigurationError) -> ProviderHandle

    init<Plugin: Provider>(_ plugin: Plugin.Type, name: String, configuration: Plugin.Configuration) {
        self.name = name
        buildProvider = { (context) throws(ConfigurationError) in
            ProviderHandle(try Plugin(configuration, context: context), name: name)
        }
    }

    /// Builds the provider.
    ///
    /// No I/O; it is not started.
    package func build(_ context: ProviderContext) throws(ConfigurationError) -> ProviderHandle {
        try buildProvider(context)
    }
}
