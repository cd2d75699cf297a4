private import CLinux
private import CMartletPlugin
internal import MartletProvider

/// A library in this process. Swift code cannot be unloaded, so it stays until the process ends.
struct LoadedLibrary: Sendable {
    /// Why a library could not be loaded.
    struct LoadError: Error {
        let message: String
    }

    /// The kinds that it registers.
    let registry: ProviderRegistry
    /// What its code says that it was built for.
    let facts: PluginFacts

    /// Loads a library, which runs its constructors, and registers its providers.
    init(path: String) throws(LoadError) {
        guard let handle = unsafe dlopen(path, RTLD_NOW | RTLD_LOCAL) else {
            throw LoadError(message: Self.lastError)
        }
        guard let symbol = unsafe dlsym(handle, "martlet_plugin") else { throw LoadError(message: Self.lastError) }
        let entry = unsafe unsafeBitCast(symbol, to: (@convention(c) () -> UnsafePointer<martlet_plugin_info>?).self)
        guard let info = unsafe entry(), unsafe info.pointee.size >= UInt64(MemoryLayout<martlet_plugin_info>.size),
            let register = unsafe info.pointee.register_providers, let stamp = unsafe info.pointee.stamp,
            let compiler = unsafe info.pointee.compiler
        else { throw LoadError(message: "martlet_plugin returned no description") }
        facts = unsafe PluginFacts(
            major: info.pointee.api_major, minor: info.pointee.api_minor, stamp: String(cString: stamp),
            compiler: String(cString: compiler))
        var registry = ProviderRegistry()
        // Other facts may mean another form of the registry.
        if facts.major == PluginFacts.gateway.major {
            unsafe withUnsafeMutablePointer(to: &registry) { unsafe register(info, UnsafeMutableRawPointer($0)) }
        }
        self.registry = registry
    }

    /// Which symbols of a library are not defined anywhere; for a process that ends afterwards.
    static func missingSymbols(of library: ELFLibrary) -> [String] {
        for name in library.needed { _ = unsafe dlopen(name, RTLD_LAZY | RTLD_GLOBAL) }
        return library.undefined.filter { unsafe dlsym(nil, $0) == nil }
    }

    private static var lastError: String {
        guard let text = unsafe dlerror() else { return "unknown error" }
        return unsafe String(cString: text)
    }
}
