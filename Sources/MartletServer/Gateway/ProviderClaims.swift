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
    private let registering: Set<String>
    /// Whether a mail proves that a name is its user's address.
    private let provesAddresses: Bool

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
        registering = Set(zip(names, handles).compactMap { name, handle in handle?.selfServing.map { _ in name } })
        provesAddresses = handles.contains { $0?.selfServing?.selfService.usesAddresses == true }
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

    /// Reports a page on which a client can take the address of another person for a name, or a name that gets claims.
    func warnAboutNames(
        _ browser: BrowserConfiguration?, _ accounts: AccountsConfiguration?, into diagnostics: inout Diagnostics
    ) {
        guard let browser, browser.registers else { return }
        for bootstrap in accounts?.bootstrap ?? [] where registering.contains(bootstrap.provider.value) {
            let name = bootstrap.providerSubject.value
            guard !provesAddresses || !UserRecord.isAddress(name) else { continue }
            diagnostics.warning(
                .configInsecure, at: bootstrap.providerSubject.location,
                "provider_subject: whoever registers as '\(name)' first gets these claims, and nothing proves who that is: add the "
                    + "user by martlet user add before, or name an address that a mail proves")
        }
        guard !provesAddresses else { return }
        diagnostics.warning(
            .configInsecure, at: browser.registersLocation,
            "register: a client can take the address of another person for a name, and nothing proves whose it is: "
                + "add register or reset to the provider for passwords")
    }

    /// Reports providers that claim what they must not get: the gateway's own tokens, or a header with another meaning.
    func checkSources(_ configurations: [ProviderConfiguration], into diagnostics: inout Diagnostics) {
        for (index, configuration) in configurations.enumerated() where accepts.indices.contains(index) {
            let made = Self.madeBy[configuration.kind.value]
            for reason in accepts[index].compactMap({ Self.objection(to: $0, except: made) }) {
                diagnostics.error(
                    .configBadValue, at: configuration.name.location, "provider '\(names[index])' accepts \(reason)")
            }
        }
    }

    /// The tokens of the gateway that a kind of provider makes.
    private static let madeBy = ["api_key": OwnToken.apiKey]

    /// - Parameter made: what the provider makes itself.
    private static func objection(to source: CredentialSource, except made: OwnToken?) -> String? {
        switch source {
        case .bearerPrefix(""): "tokens with an empty prefix, which every token has"
        case .bearerPrefix(let prefix):
            switch ownToken(among: prefix, except: made) {
            case let own? where prefix.hasPrefix(own.prefix):
                "tokens that begin with '\(own.prefix)', which are the gateway's own"
            case .some: "tokens that begin with '\(prefix)', as the gateway's own do"
            case nil: nil
            }
        case .header(let name) where !FieldNameSyntax.isValid(name): "the header '\(name)', which is no field name"
        case .header(let name) where unsuitable.contains(name.lowercased()):
            "the header '\(name)', which has a meaning of its own"
        case .bearerJWT, .basic, .header, .messageSignature, .clientCertificate: nil
        }
    }

    /// A token of the gateway that a provider would get with this prefix.
    private static func ownToken(among prefix: String, except made: OwnToken?) -> OwnToken? {
        OwnToken.allCases.first { $0 != made && (prefix.hasPrefix($0.prefix) || $0.prefix.hasPrefix(prefix)) }
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
