private import AppleProvider
public import MartletProvider
private import WeChatProvider

/// The providers that are compiled in.
public enum BundledProviders {
    /// Registers all of them.
    public static func register(in registry: inout ProviderRegistry) {
        registry.register(AppleProvider.self)
        registry.register(WeChatProvider.self)
    }
}
