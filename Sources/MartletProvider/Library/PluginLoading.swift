package import MartletConfig

/// Loads plugins in shared libraries.
package protocol PluginLoading: Sendable {
    /// Loads those that are not loaded yet.
    ///
    /// - Parameters:
    ///   - libraries: the files of `plugins:`, with their positions.
    ///   - registry: receives the providers of all of them.
    ///   - diagnostics: receives why a library cannot be used, and warnings.
    func load(
        _ libraries: [Located<FilePath>], into registry: inout ProviderRegistry, _ diagnostics: inout Diagnostics)
}
