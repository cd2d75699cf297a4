internal import MartletAccounts
internal import MartletAdmin
internal import MartletConfig
internal import MartletCore
internal import MartletExplain
internal import MartletProvider
internal import MartletRedis
internal import MartletServer

/// `martlet explain`: how a request would be handled, phase by phase.
///
/// Nothing is sent to an upstream. The session store and the account store are read, but not changed.
struct ExplainCommand: Command {
    let target: String
    let method: String
    /// `nil` if it is given as `--header`, or not at all.
    let host: String?
    /// `http` or `https`, which decides the listener; `nil` for the first that serves requests.
    let scheme: String?
    /// Other header fields, as they are typed.
    let lines: [String]
    let tokenPath: String?
    /// Names a running gateway, or else the configuration is explained.
    let admin: AdminAddress
    private let hasHostField: Bool
    private let certificatePath: String?
    private let callerPath: String?
    /// The provider that verifies the token of a login, instead of a route; `nil` for a request.
    private let login: String?
    private let command: ConfiguredCommand

    /// - Throws: `UsageError` for options that cannot be combined.
    init(_ options: Options, _ program: Program) throws(Options.UsageError) {
        if let url = options["url"] {
            guard options["host"] == nil else {
                throw Options.UsageError(message: "--url cannot be combined with --host")
            }
            guard let parsed = RequestURL(url) else {
                throw Options.UsageError(
                    message: "--url requires an absolute URL such as https://api.example.com/v1/orders")
            }
            (target, host, scheme) = (parsed.target, parsed.host, parsed.scheme)
        } else {
            (target, host, scheme) = (options["path"] ?? "/", options["host"], nil)
        }
        lines = options.all("header")
        let names = try lines.map(Self.fieldName)
        hasHostField = names.contains("host")
        (tokenPath, callerPath, certificatePath) = (options["token"], options["as"], options["certificate"])
        login = options["login"]
        guard login == nil || tokenPath != nil else {
            throw Options.UsageError(message: "--login requires --token")
        }
        guard callerPath == nil || !names.contains("authorization") else {
            throw Options.UsageError(message: "--as cannot be combined with Authorization")
        }
        method = options["method"] ?? "GET"
        admin = AdminAddress(options, program.registry)
        command = ConfiguredCommand(options, program.registry)
    }

    private static func fieldName(_ line: String) throws(Options.UsageError) -> String {
        guard let colon = line.utf8.firstIndex(of: UInt8(ascii: ":")), colon != line.startIndex else {
            throw Options.UsageError(message: "--header requires 'Name: value'")
        }
        return line[..<colon].lowercased()
    }

    func run() async throws(StartError) -> ExitCode {
        guard !admin.isGiven else { return try explainAtGateway() }
        return try await command.run { blueprint, services throws(StartError) in
            let token: Secret?
            let request: ExplainedRequest?
            do throws(ArgumentFileError) {
                token = try tokenPath.map { (path) throws(ArgumentFileError) in
                    Secret(try ArgumentFile.read(path, "the token file"))
                }
                request = try login == nil ? self.request(blueprint, token) : nil
            } catch {
                Output.error("martlet explain: \(TerminalText.escaped(error.message))\n")
                return .usage
            }
            if let request { return show(try await explain(request, blueprint, services), of: request, blueprint) }
            guard let login, let token else { return .usage }
            return try await LoginExplanation(provider: login, token: token, isJSON: admin.printsJSON)
                .run(blueprint, services)
        }
    }

    private func request(_ blueprint: Blueprint, _ token: Secret?) throws(ArgumentFileError) -> ExplainedRequest {
        let defaultHost = hasHostField ? nil : Self.defaultHost(blueprint)
        return ExplainedRequest(
            method: method, target: target, host: host ?? defaultHost, fields: lines.map { Secret(Array($0.utf8)) },
            token: token,
            assumed: try callerPath.map { (path) throws(ArgumentFileError) in
                try CallerFile.read(path, now: Clock.system.unixTime)
            }, listener: ExplainedListener(of: blueprint.configuration.server, scheme: scheme),
            certificate: try certificatePath.map { (path) throws(ArgumentFileError) in
                try CertificateFile.read(path)
            })
    }

    private func explain(
        _ request: ExplainedRequest, _ blueprint: Blueprint, _ services: Services
    ) async throws(StartError) -> RequestExplanation {
        let graph = try Graph.ofCommand(blueprint, services, access: .readOnly)
        var hasAccounts = true
        if request.assumed == nil {
            // An unavailable store is reported in the phase that needs it.
            try? await graph.store.redis?.waitUntilConnected()
            hasAccounts = await graph.openAccounts()
        }
        let explainer = RequestExplainer(
            graph.snapshot, clock: services.clock, sharesSessions: graph.store.redis != nil, hasAccounts: hasAccounts)
        let explanation = await explainer.explain(request)
        await graph.accounts?.store.shutdown()
        graph.store.shutdown()
        return explanation
    }

    private func show(
        _ explanation: RequestExplanation, of request: ExplainedRequest, _ blueprint: Blueprint
    ) -> ExitCode {
        let page = ExplanationPage(request, explanation, blueprint)
        Output.line(admin.printsJSON ? ExplanationDocument(page).text : page.text)
        switch explanation.outcome {
        case .forwarded, .answeredLocally, .responded, .preflight: return .ok
        case .refused: return .rejected
        case .undecidable: return .unavailable
        }
    }

    /// The `Host` of a client that connects to the first listener.
    private static func defaultHost(_ blueprint: Blueprint) -> String {
        guard let address = blueprint.configuration.server.listeners.first?.address.value, case .ip = address else {
            return "localhost"
        }
        return address.configurationText
    }

    static let grammar = CommandGrammar("explain", "Explain how a request would be handled") { grammar in
        grammar.details = """
            Explains how a request would be handled: its route, the provider's checks, the conditions, the headers that the
            upstream receives. Nothing is sent to an upstream; session tokens and accounts are looked up without changes.
            With --admin a running gateway explains it, which also knows the sessions of its own memory.

            With --login it explains how a provider verifies the identity token of a login, whatever routes accept:
            which audience it has, for example, and which ones are expected.
            """
        grammar.options = [
            .value("path", "PATH", .text, "path and query, as in the request line"),
            .value("url", "URL", .url, "host, path and query: https://api.example.com/v1/orders?page=2"),
            .value("login", "PROVIDER", .text, "verify a token as that of a login with this provider"),
            .value("method", "METHOD", .text, "default: GET"),
            .value("host", "HOST", .text, "the Host header; default: the first listener's address"),
            .value("header", "LINE", .text, "another header, 'Name: value'").repeatable,
            .value("token", "FILE", .file, "a file with a bearer token, - for standard input"),
            .value("certificate", "FILE", .file, "a PEM file with the certificate of the client"),
            .value(
                "as", "FILE", .file,
                "a JSON file with the assumed caller, instead of a credential; - for standard input"),
            .json,
        ]
        grammar.alternatives = [
            .exactlyOne("path", "url", "login"), .atMostOne("login", "as"), .atMostOne("login", "admin"),
            .atMostOne("login", "address"), .atMostOne("url", "host"), .atMostOne("token", "as"),
            .atMostOne("as", "admin"), .atMostOne("as", "address"), .atMostOne("certificate", "admin"),
            .atMostOne("certificate", "address"),
        ]
        grammar.addAdminOptions()
        grammar.example("martlet explain --path /v1/orders --token token.txt", "with a bearer token")
        grammar.example(
            "martlet explain --url https://api.example.com/v1/orders --as caller.json", "for an assumed caller")
        grammar.example(
            "martlet explain --login apple --token token.txt", "what a login with this identity token gets")
        grammar.example(
            "martlet explain --path /v1/orders --token token.txt --admin http://127.0.0.1:9901",
            "by the running gateway, with the sessions of its memory")
        grammar.exits = [
            .ok: "forwarded", .rejected: "rejected",
            .unavailable: "undecidable because a dependency is unavailable, or no gateway is running",
            .configuration: "the configuration has errors",
        ]
    }
}

/// A client's certificate, which its provider checks: nothing is proved with it here.
enum CertificateFile {
    /// Reads the first certificate of a PEM file.
    /// - Returns: it in DER.
    static func read(_ path: String) throws(ArgumentFileError) -> [UInt8] {
        let text = try ArgumentFile.read(path, "the certificate")
        let lines = text.split { $0 == 0x0A || $0 == 0x0D }
        let body = lines.drop { !$0.starts(with: "-----BEGIN CERTIFICATE-----".utf8) }.dropFirst()
            .prefix { !$0.starts(with: "-----END".utf8) }
        guard let der = Base64.decode(body.flatMap(\.self)[...], padding: .required), !der.isEmpty else {
            throw ArgumentFileError(message: "the certificate file '\(path)' has no certificate as PEM")
        }
        return der
    }
}
