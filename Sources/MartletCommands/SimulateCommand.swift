private import CLinux
internal import MartletConfig
internal import MartletCore
internal import MartletServer
internal import MartletSimulator

/// `martlet simulate apple|wechat`: a standalone simulator, to test a configuration against.
struct SimulateCommand: Command {
    static let servesUntilSignal = true

    enum Kind {
        case apple(SimulatedDevelopers)
        case weChat([SimulatedApp])
    }

    private let kind: Kind
    private let address: SocketAddress

    /// - Throws: `UsageError` for an unknown simulator, an invalid address, application or key.
    init(_ options: Options, _ program: Program) throws(Options.UsageError) {
        let specifications = options.all("app")
        kind =
            options.words.first == "wechat"
            ? .weChat(try SimulatedApp.list(specifications)) : .apple(try SimulatedDevelopers(options))
        guard let address = SocketAddress(options["listen"] ?? "127.0.0.1:0"), case .ip = address else {
            throw Options.UsageError(message: "--listen requires an address such as 127.0.0.1:9100")
        }
        self.address = address
    }

    func run() async throws(StartError) -> ExitCode {
        let signals: AsyncStream<Signals.Signal>
        do { signals = try Signals.stream() } catch {
            Output.error("martlet simulate: \(error)\n")
            return .internalFault
        }
        let service = try SimulatorService(kind, at: address)
        if !address.isLocal {
            Output.error("martlet simulate: warning: other machines can reach this address and get any token or code\n")
        }
        Output.line(page(service.url))
        if Output.writeError == nil { await Self.wait(for: signals) }
        await service.stop()
        return .ok
    }

    private func page(_ url: String) -> String {
        switch kind {
        case .apple(let developers): SimulatorPage.apple(url, developers.keys)
        case .weChat(let apps): SimulatorPage.weChat(url, apps)
        }
    }

    private static func wait(for signals: AsyncStream<Signals.Signal>) async {
        for await signal in signals {
            if case .end = signal { return }
        }
    }

    static let grammar = CommandGrammar("simulate", "Run a local Apple or WeChat, to test a configuration against") {
        grammar in
        let listen = CommandOption.value(
            "listen", "ADDRESS", .address, "the address to listen on, IP:PORT; default: a free port on 127.0.0.1")
        grammar.details = """
            A local Apple that signs any token, or a local WeChat that issues codes, to test a configuration against. Prints
            the configuration for it and curl commands. Its tokens prove nothing: do not expose it to a network.
            """
        grammar.isSilent = true
        grammar.subcommands = [
            CommandGrammar("apple", "Sign in with Apple: keys, tokens, codes, transfers") { apple in
                apple.options = [
                    listen,
                    .value("team", "TEAMID", .text, "the developer's team, ten characters of A-Z 0-9"),
                    .value(
                        "key", "KEYID=FILE", .text,
                        "the id and the PEM file, private or public, of a P-256 key of the team; default: a generated "
                            + "key SIMKEY0001 of the team SIMTEAM001"
                    ).repeatable,
                    .value(
                        "refresh-limit", "N", .number,
                        "throttle a refresh token after N verifications in a day; default: no limit"),
                ]
            },
            CommandGrammar("wechat", "WeChat: codes and user information") { weChat in
                weChat.options = [
                    listen,
                    .value(
                        "app", "ID:SECRET:VARIANT", .text,
                        "an application, where VARIANT is mobile, website, official_account or mini_program; default: one "
                            + "application of each variant"
                    ).repeatable,
                ]
            },
        ]
        grammar.example("martlet simulate apple --listen 127.0.0.1:9101", "an Apple at a fixed address")
        grammar.example("martlet simulate wechat", "a WeChat with an application of each variant")
        grammar.exits = [.ok: "stopped by SIGTERM or SIGINT", .unavailable: "the address is in use"]
    }
}

/// An application of the simulated WeChat.
struct SimulatedApp: Equatable {
    /// Its name in the configuration and in logins.
    let name: String
    let id: String
    let secret: String
    let variant: WeChatSimulator.App.Variant
    /// Whether the secret is a default of the simulator, which may be printed.
    let isDefault: Bool

    var app: WeChatSimulator.App { .init(id: id, secret: secret, variant: variant) }

    /// The applications of `--app`; without any, one of each variant.
    static func list(_ specifications: [String]) throws(Options.UsageError) -> [SimulatedApp] {
        guard !specifications.isEmpty else { return defaults }
        var apps: [SimulatedApp] = []
        for specification in specifications {
            guard let app = SimulatedApp(specification, number: apps.count + 1) else {
                let variants = WeChatSimulator.App.Variant.allCases.map(\.rawValue).joined(separator: ", ")
                throw Options.UsageError(
                    message:
                        "--app requires ID:SECRET:VARIANT: the id is wx and 16 hexadecimal digits, the variant one of \(variants)"
                )
            }
            guard !apps.contains(where: { $0.id.lowercased() == app.id.lowercased() }) else {
                throw Options.UsageError(message: "two --app options have the same id")
            }
            apps.append(app)
        }
        return apps
    }

    private static let defaults = WeChatSimulator.App.Variant.allCases.enumerated().map { index, variant in
        SimulatedApp(
            name: name(of: variant), id: "wx000000000000000\(index + 1)", secret: "simulated-secret-\(index + 1)",
            variant: variant, isDefault: true)
    }

    private init(name: String, id: String, secret: String, variant: WeChatSimulator.App.Variant, isDefault: Bool) {
        (self.name, self.id, self.secret, self.variant, self.isDefault) = (name, id, secret, variant, isDefault)
    }

    private init?(_ text: String, number: Int) {
        guard let first = text.firstIndex(of: ":"), let last = text.lastIndex(of: ":"), first < last else {
            return nil
        }
        let (id, secret) = (text[..<first], text[text.index(after: first)..<last])
        let digits = id.utf8.dropFirst(2)
        guard let variant = WeChatSimulator.App.Variant(rawValue: String(text[text.index(after: last)...])),
            id.hasPrefix("wx"), digits.count == 16, digits.allSatisfy(Self.isHexadecimal),
            !secret.isEmpty, secret.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
        else { return nil }
        self.init(
            name: "\(Self.name(of: variant))\(number == 1 ? "" : String(number))", id: String(id),
            secret: String(secret), variant: variant, isDefault: false)
    }

    private static func isHexadecimal(_ byte: UInt8) -> Bool {
        (0x30...0x39).contains(byte) || (0x61...0x66).contains(byte | 0x20)
    }

    private static func name(of variant: WeChatSimulator.App.Variant) -> String {
        switch variant {
        case .mobile: "ios"
        case .website: "web"
        case .officialAccount: "page"
        case .miniProgram: "mini"
        }
    }
}
