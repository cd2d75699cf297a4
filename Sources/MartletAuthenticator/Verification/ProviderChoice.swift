internal import MartletCore
internal import MartletJSON
internal import MartletProvider

/// Chooses the provider of a route that verifies a bearer token; the unverified token decides nothing else.
enum ProviderChoice {
    /// - Returns: the index of the first provider that claims the token, `nil` when none does.
    static func pick(_ token: [UInt8], among candidates: [Int32], of providers: [ProviderHandle]) -> Int32? {
        let able = candidates.filter { index in
            let provider = providers[Int(index)]
            return provider.authenticating != nil && provider.accepts.contains { $0 != .basic }
        }
        guard able.count > 1 else { return able.first }
        let issuer = claimedIssuer(token)
        return able.first { candidate in
            providers[Int(candidate)].accepts.contains { source in
                switch source {
                case .bearerJWT(let issuers): issuer.map { issuers.contains($0) } ?? false
                case .bearerPrefix(let prefix): token.starts(with: Array(prefix.utf8))
                case .basic: false
                }
            }
        }
    }

    /// The unverified `iss` of a compact JWS.
    private static func claimedIssuer(_ token: [UInt8]) -> String? {
        guard token.count <= 8192 else { return nil }
        let parts = token.split(separator: UInt8(ascii: "."), maxSplits: 3, omittingEmptySubsequences: false)
        guard parts.count == 3, let payload = Base64URL.decode(Array(parts[1])) else { return nil }
        guard let value = try? JSON.parse(payload, limits: JSONLimits(maximumDepth: 8, maximumBytes: 8192)) else {
            return nil
        }
        return value.object?["iss"]?.string
    }
}
