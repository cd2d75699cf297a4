internal import MartletCore
internal import MartletJSON
internal import MartletProvider

/// Chooses the provider of a route that verifies a bearer token; the unverified token decides nothing else.
enum ProviderChoice {
    /// - Parameter maximumTokenBytes: a longer token is not parsed; the first provider of such tokens rejects it.
    /// - Returns: the index of the first provider that claims the token, `nil` when none does.
    static func pick(
        _ token: [UInt8], among candidates: [Int32], of providers: [ProviderHandle], maximumTokenBytes: Int
    ) -> Int32? {
        let able = candidates.filter { index in
            let provider = providers[Int(index)]
            return provider.authenticating != nil && provider.accepts.contains(where: \.isBearer)
        }
        // The only one says itself what is wrong with a token; one that sends them elsewhere is not asked.
        if able.count == 1, !providers[Int(able[0])].isSelective { return able.first }
        let isTooLong = token.count > maximumTokenBytes && parts(of: token) != nil
        let issuer = isTooLong ? nil : claimedIssuer(token)
        return able.first { candidate in
            providers[Int(candidate)].accepts.contains { source in
                switch source {
                case .bearerJWT(let issuers): isTooLong || issuer.map { issuers.contains($0) } ?? false
                case .bearerPrefix(let prefix): token.starts(with: Array(prefix.utf8))
                case .basic, .header, .messageSignature, .clientCertificate: false
                }
            }
        }
    }

    /// The unverified `iss` of a compact JWS.
    private static func claimedIssuer(_ token: [UInt8]) -> String? {
        guard let parts = parts(of: token), let payload = Base64URL.decode(Array(parts[1])) else { return nil }
        let limits = JSONLimits(maximumDepth: 8, maximumBytes: token.count)
        return (try? JSON.parse(payload, limits: limits))?.object?["iss"]?.string
    }

    /// The three parts of a compact JWS; `nil` for another token.
    private static func parts(of token: [UInt8]) -> [ArraySlice<UInt8>]? {
        let parts = token.split(separator: UInt8(ascii: "."), maxSplits: 3, omittingEmptySubsequences: false)
        return parts.count == 3 ? parts : nil
    }
}

extension CredentialSource {
    /// Whether it is a bearer token in `Authorization`.
    fileprivate var isBearer: Bool {
        switch self {
        case .bearerJWT, .bearerPrefix: true
        case .basic, .header, .messageSignature, .clientCertificate: false
        }
    }
}
