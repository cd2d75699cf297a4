internal import MartletConfig
internal import MartletCore
internal import MartletJOSE
internal import MartletProvider
internal import MartletRouter

/// Finds routes on which two providers claim the same credential: nothing would tell them apart.
struct ProviderClaims {
    private let names: [String]
    private let accepts: [[CredentialSource]]

    /// Builds every provider without I/O, only to ask what it claims; a provider that cannot be built is reported.
    init(_ prepared: [PreparedProvider], into diagnostics: inout Diagnostics) {
        names = prepared.map(\.name)
        accepts = prepared.map { provider in
            do throws(ConfigurationError) {
                return try provider.build(ProviderClaims.context(provider.name)).accepts
            } catch {
                diagnostics.add(error)
                return []
            }
        }
    }

    /// Reports the first such pair of every route.
    func check(_ routes: RouteTable, _ configurations: [RouteConfiguration], into diagnostics: inout Diagnostics) {
        for (route, configuration) in zip(routes.routes, configurations) {
            guard let (first, second) = conflict(route.providers) else { continue }
            diagnostics.error(
                .configAmbiguousProviders, at: configuration.name.location,
                "route '\(route.name)' is judged by '\(names[first])' and '\(names[second])', which claim the same tokens"
            )
        }
    }

    private func conflict(_ providers: [Int]) -> (Int, Int)? {
        for (place, second) in providers.enumerated() {
            for first in providers[..<place] where ProviderClaims.overlap(accepts[first], accepts[second]) {
                return (first, second)
            }
        }
        return nil
    }

    private static func overlap(_ left: [CredentialSource], _ right: [CredentialSource]) -> Bool {
        left.contains { a in
            right.contains { b in
                switch (a, b) {
                case (.bearerJWT(let mine), .bearerJWT(let theirs)): !Set(mine).isDisjoint(with: theirs)
                case (.bearerPrefix(let mine), .bearerPrefix(let theirs)):
                    mine.hasPrefix(theirs) || theirs.hasPrefix(mine)
                default: false
                }
            }
        }
    }

    private static func context(_ name: String) -> ProviderContext {
        ProviderContext(
            name: name, clock: .system, logger: .silent,
            makeIssuerKeys: { url, algorithms, onRemoved in
                IssuerKeys(
                    url: url, policy: IssuerKeysPolicy(JWKSConfiguration()), allowing: algorithms, fetcher: NoFetcher(),
                    store: nil, storeKeyPrefix: "", clock: .system, logger: .silent, onKeysRemoved: onRemoved)
            },
            forget: {})
    }

    /// Stands where nothing may be fetched.
    private struct NoFetcher: KeyFetching {
        func fetch(_ url: String, timeout: Duration, maximumBytes: Int) async throws(FetchError) -> [UInt8] {
            throw FetchError(code: "fetch.not_allowed", message: "a check fetches nothing")
        }
    }
}
