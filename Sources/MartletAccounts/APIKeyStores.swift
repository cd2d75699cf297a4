package import MartletProvider

/// The API keys of an account store, those of each provider apart.
package struct APIKeyStores: Sendable {
    private let make: @Sendable (String) -> any APIKeyStoring

    /// - Parameter make: the keys of one provider.
    package init(_ make: @escaping @Sendable (String) -> any APIKeyStoring) { self.make = make }

    /// The keys of a provider, by its name in `providers:`.
    package subscript(provider: String) -> any APIKeyStoring { make(provider) }
}
