public import CMartletPlugin

/// The entry of a plugin in a shared library.
public enum MartletPlugin {
    /// Describes this library to the gateway; what its C symbol `martlet_plugin` returns.
    ///
    /// ```swift
    /// @c(martlet_plugin) public func martletPlugin() -> UnsafeRawPointer {
    ///     MartletPlugin.export { registry in registry.register(LineProvider.self) }
    /// }
    /// ```
    ///
    /// - Parameter register: adds the library's providers; called once.
    @_alwaysEmitIntoClient
    public static func export(
        _ register: @escaping @Sendable (_ registry: inout ProviderRegistry) -> Void
    ) -> UnsafeRawPointer {
        // The note is compiled into the caller, by the caller's compiler.
        unsafe describe(martlet_plugin_note(), register)
    }

    /// Describes a library whose note this is.
    ///
    /// Public because ``export(_:)`` is compiled into libraries, which call this.
    @unsafe public static func describe(
        _ note: UnsafePointer<martlet_plugin_note>,
        _ register: @escaping @Sendable (_ registry: inout ProviderRegistry) -> Void
    ) -> UnsafeRawPointer {
        let description = UnsafeMutablePointer<Description>.allocate(capacity: 1)
        // Never freed, like the library.
        unsafe description.initialize(
            to: Description(
                info: martlet_plugin_info(
                    size: UInt64(MemoryLayout<martlet_plugin_info>.size), api_major: note.pointee.api_major,
                    api_minor: note.pointee.api_minor,
                    compiler: martlet_plugin_note_compiler(note),
                    stamp: martlet_plugin_note_stamp(note),
                    register_providers: { info, registry in unsafe MartletPlugin.register(info, registry) }),
                register: register))
        return UnsafeRawPointer(description)
    }

    /// What ``describe(_:_:)`` returns a pointer to: C sees only the beginning.
    @unsafe private struct Description {
        let info: martlet_plugin_info
        let register: @Sendable (inout ProviderRegistry) -> Void
    }

    private static func register(_ info: UnsafePointer<martlet_plugin_info>?, _ registry: UnsafeMutableRawPointer?) {
        guard let info = unsafe info, let registry = unsafe registry else { return }
        let description = unsafe UnsafeRawPointer(info).assumingMemoryBound(to: Description.self)
        unsafe description.pointee.register(&registry.assumingMemoryBound(to: ProviderRegistry.self).pointee)
    }
}
