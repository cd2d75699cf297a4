internal import MartletProvider

/// The providers that may verify a credential, in the order of the route, and what they read.
struct AuthenticationPlan: Sendable, Equatable {
    let providers: [Int32]
    /// The headers that are credentials for one of them, by their indices.
    let headerSources: [UInt8]
    /// Those of them whose provider reads the whole head: its decisions are of one request each.
    let singleUseSources: [UInt8]
    /// The parts of a request that a decision of one of them depends on.
    let reuseKey: Set<RequestPart>
    /// Whether a client certificate is a credential for one of them.
    let acceptsCertificates: Bool

    /// Whether more than `Authorization` decides.
    var readsRequest: Bool { !headerSources.isEmpty || !reuseKey.isEmpty || acceptsCertificates }

    init(_ providers: [Int32], of all: [ProviderHandle], headerSources: [HeaderSource]) {
        self.providers = providers
        let sources = headerSources.indices.compactMap { index in
            headerSources[index].provider(among: providers) == nil ? nil : UInt8(exactly: index)
        }
        self.headerSources = sources
        singleUseSources = sources.filter { source in
            headerSources[Int(source)].provider(among: providers).map { all[Int($0)].readsHead } ?? false
        }
        acceptsCertificates = providers.contains { all[Int($0)].accepts.contains(.clientCertificate) }
        reuseKey = providers.reduce(into: []) { $0.formUnion(all[Int($1)].reuseKey ?? []) }
    }
}
