private import APIKeyProvider
private import AppleProvider
public import MartletProvider
private import PasswordProvider
private import WeChatProvider

/// The providers that are compiled into the gateway.
public enum BundledProviders {
    /// Registers all of them.
    public static func register(in registry: inout ProviderRegistry) {
        registry.register(APIKeyProvider.self)
        registry.register(AppleProvider.self)
        registry.register(PasswordProvider.self)
        registry.register(WeChatProvider.self)
    }
}
