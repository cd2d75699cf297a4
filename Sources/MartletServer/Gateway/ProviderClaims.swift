internal import MartletConfig
internal import MartletCore
internal import MartletProvider
internal import MartletRouter

/// Finds routes on which two providers claim the same direct credential, which would be ambiguous.
struct ProviderClaims {
    private let names: [String]
    private let accepts: [[CredentialSource]]
    /// The keys because of which mails have to be sent.
    private let mailLocations: [SourceLocation]

    /// Builds every provider without I/O to learn what it accepts; a provider that cannot be built is reported.
    init(_ prepared: [PreparedProvider], hasUsers: Bool, into diagnostics: inout Diagnostics) {
        names = prepared.map(\.name)
        var handles: [ProviderHandle?] = []
        for provider in prepared {
            do throws(ConfigurationError) {
                handles.append(try provider.build(.detached(provider.name, clock: .system, hasUsers: hasUsers)))
            } catch {
                diagnostics.add(error)
                handles.append(nil)
            }
        }
        accepts = handles.map { $0?.accepts ?? [] }
        mailLocations = handles.compactMap { $0?.selfServing?.selfService.mailLocation }
    }

    /// Reports providers that need mails if neither `mail:` nor a webhook sends them.
    func checkMail(
        _ configuration: GatewayConfiguration, _ webhooks: [WebhookPlan], into diagnostics: inout Diagnostics
    ) {
        guard configuration.mail == nil, !webhooks.contains(where: \.getsMails) else { return }
        for location in mailLocations {
            diagnostics.error(
                .configMissingKey, at: location,
                "mails have to be sent: needs mail:, or a webhook with the events mail.*")
        }
    }

    /// Reports providers that claim what they must not get: the gateway's own tokens, or a header with another meaning.
    func checkSources(_ configurations: [ProviderConfiguration], into diagnostics: inout Diagnostics) {
        for (index, configuration) in configurations.enumerated() where accepts.indices.contains(index) {
            for reason in accepts[index].compactMap(Self.objection) {
                diagnostics.error(
                    .configBadValue, at: configuration.name.location, "provider '\(names[index])' accepts \(reason)")
            }
        }
    }

    private static func objection(to source: CredentialSource) -> String? {
        switch source {
        case .bearerPrefix(""): "tokens with an empty prefix, which every token has"
        case .bearerPrefix(let prefix) where prefix.hasPrefix("mat_") || prefix.hasPrefix("mrt_"):
            "tokens that begin with '\(prefix.prefix(4))', which are the gateway's own"
        case .bearerPrefix(let prefix) where "mat_".hasPrefix(prefix) || "mrt_".hasPrefix(prefix):
            "tokens that begin with '\(prefix)', as the gateway's own do"
        case .header(let name) where !FieldNameSyntax.isValid(name): "the header '\(name)', which is no field name"
        case .header(let name) where unsuitable.contains(name.lowercased()):
            "the header '\(name)', which has a meaning of its own"
        case .bearerJWT, .bearerPrefix, .basic, .header, .messageSignature, .clientCertificate: nil
        }
    }

    private static let unsuitable: Set<String> = [
        "authorization", "connection", "content-length", "content-type", "cookie", "expect", "forwarded", "host",
        "keep-alive", "proxy-authorization", "proxy-connection", "signature-input", "te", "trailer",
        "transfer-encoding", "upgrade", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto",
    ]

    /// Reports the first ambiguous pair of every route.
    func check(_ routes: RouteTable, _ configurations: [RouteConfiguration], into diagnostics: inout Diagnostics) {
        for (route, configuration) in zip(routes.configured, configurations) {
            // A session names its provider; only direct credentials are claimed by one.
            guard route.credentials.contains(.direct), let (first, second) = conflict(route.providers) else { continue }
            diagnostics.error(
                .configAmbiguousProviders, at: configuration.name.location,
                "route '\(route.name)': providers '\(names[first])' and '\(names[second])' accept the same tokens"
            )
        }
    }

    /// Warns of routes that accept identity tokens by default beside sessions: no logout ends an identity token.
    func warnAboutIdentityTokens(
        _ routes: RouteTable, _ configuration: GatewayConfiguration, into diagnostics: inout Diagnostics
    ) {
        guard configuration.hasSessionsBlock else { return }
        for (route, written) in zip(routes.configured, configuration.routes) {
            guard !written.statesCredentials, route.credentials.contains(.direct),
                let provider = route.providers.first(where: { acceptsIdentityTokens($0) })
            else { continue }
            diagnostics.warning(
                .configInsecure, at: written.name.location,
                "route '\(route.name)' accepts identity tokens of provider '\(names[provider])' beside sessions, and no "
                    + "logout ends them: write credentials: [session], or [session, direct] if that is intended")
        }
    }

    private func acceptsIdentityTokens(_ provider: Int) -> Bool {
        accepts[provider].contains { if case .bearerJWT = $0 { true } else { false } }
    }

    /// Warns of listeners that accept passwords of `Authorization: Basic` in clear text from other machines.
    func warnAboutCleartextPasswords(
        _ routes: RouteTable, _ configuration: GatewayConfiguration, into diagnostics: inout Diagnostics
    ) {
        let direct = Set(routes.routes.filter { $0.credentials.contains(.direct) }.flatMap(\.providers)).sorted()
        guard let provider = direct.first(where: { accepts[$0].contains(.basic) }) else { return }
        for listener in configuration.server.listeners where !listener.address.value.isLocal && listener.tls == nil {
            if listener.redirectsToHTTPSPort != nil { continue }
            diagnostics.warning(
                .configInsecure, at: listener.address.location,
                "passwords for provider '\(names[provider])' (Authorization: Basic) may be sent in clear text to this "
                    + "listener from other machines")
        }
    }

    private func conflict(_ providers: [Int]) -> (Int, Int)? {
        for (index, second) in providers.enumerated() {
            for first in providers[..<index] where ProviderClaims.overlap(accepts[first], accepts[second]) {
                return (first, second)
            }
        }
        return nil
    }

    static func overlap(_ left: [CredentialSource], _ right: [CredentialSource]) -> Bool {
        left.contains { a in
            right.contains { b in
                switch (a, b) {
                case (.basic, .basic), (.clientCertificate, .clientCertificate), (.messageSignature, .messageSignature):
                    true
                case (.bearerJWT(let mine), .bearerJWT(let theirs)): !Set(mine).isDisjoint(with: theirs)
                case (.bearerPrefix(let mine), .bearerPrefix(let theirs)):
                    mine.hasPrefix(theirs) || theirs.hasPrefix(mine)
                case (.header(let mine), .header(let theirs)): mine.lowercased() == theirs.lowercased()
                default: false
                }
            }
        }
    }
}
