private import APIKeyProvider
private import AppleProvider
private import HTTPProvider
private import MTLSProvider
public import MartletProvider
private import OIDCProvider
private import PasswordProvider
private import SignedProvider
private import WeChatProvider

/// The providers that are compiled into the gateway.
public enum BundledProviders {
    /// Registers all of them.
    public static func register(in registry: inout ProviderRegistry) {
        registry.register(APIKeyProvider.self)
        registry.register(AppleProvider.self)
        registry.register(HTTPProvider.self)
        registry.register(MTLSProvider.self)
        registry.register(OIDCProvider.self)
        registry.register(PasswordProvider.self)
        registry.register(SignedProvider.self)
        registry.register(WeChatProvider.self)
    }
}
