private import CLinux
internal import MartletConfig
internal import MartletCore
internal import MartletSimulator

/// `martlet simulate apple|wechat`: one simulator by itself, for tests of a configuration of one's own.
struct SimulateCommand {
    /// Which one.
    enum Kind: Equatable {
        case apple
        case weChat([SimulatedApp])
    }

    private let kind: Kind
    private let address: SocketAddress

    /// - Throws: `UsageError` for anything but one of the two, and for an address or an application that cannot be.
    init(_ options: Options) throws(Options.UsageError) {
        let orders = options.all("app")
        switch options.words.first {
        case "apple":
            guard orders.isEmpty else { throw Options.UsageError(message: "--app is for wechat only") }
            kind = .apple
        case "wechat": kind = .weChat(try SimulatedApp.list(orders))
        default: throw Options.UsageError(message: "say apple or wechat")
        }
        guard let address = SocketAddress(options["listen"] ?? "127.0.0.1:0"), case .ip = address else {
            throw Options.UsageError(message: "--listen wants an address such as 127.0.0.1:9100")
        }
        self.address = address
    }

    func run() async -> ExitCode {
        do {
            let signals = try Signals.stream()
            let service = try SimulatorService(kind, at: address)
            if !address.isLocal {
                Output.error("martlet simulate: other machines can reach this address, and get what they ask for\n")
            }
            Output.line(page(service.url))
            if Output.problem == nil { await Self.wait(for: signals) }
            await service.stop()
            return .ok
        } catch let error as StartError {
            Output.error("martlet simulate: \(error)\n")
            return error.exit
        } catch {
            Output.error("martlet simulate: \(error)\n")
            return .internalFault
        }
    }

    private func page(_ url: String) -> String {
        switch kind {
        case .apple: SimulatorPage.apple(url)
        case .weChat(let apps): SimulatorPage.weChat(url, apps)
        }
    }

    private static func wait(for signals: AsyncStream<Signals.Signal>) async {
        for await signal in signals {
            if case .end = signal { return }
        }
    }
}

/// An application of the simulated WeChat, and how it was made known.
struct SimulatedApp: Equatable {
    /// What clients call it in a login.
    let name: String
    let id: String
    let secret: String
    let variant: WeChatSimulator.App.Variant
    /// Whether the secret is the simulator's own, so that it may be shown.
    let isOurs: Bool

    var app: WeChatSimulator.App { .init(id: id, secret: secret, variant: variant) }

    /// The applications of `--app`; one of each variant where there are none.
    static func list(_ orders: [String]) throws(Options.UsageError) -> [SimulatedApp] {
        guard !orders.isEmpty else { return standard }
        var apps: [SimulatedApp] = []
        for order in orders {
            guard let app = SimulatedApp(order, number: apps.count + 1) else {
                let variants = WeChatSimulator.App.Variant.allCases.map(\.rawValue).joined(separator: ", ")
                throw Options.UsageError(
                    message:
                        "--app wants ID:SECRET:VARIANT: an id of wx and 16 hexadecimal digits, a variant of \(variants)"
                )
            }
            guard !apps.contains(where: { $0.id.lowercased() == app.id.lowercased() }) else {
                throw Options.UsageError(message: "two --app have the same id")
            }
            apps.append(app)
        }
        return apps
    }

    /// One of each variant.
    private static let standard = WeChatSimulator.App.Variant.allCases.enumerated().map { index, variant in
        SimulatedApp(
            name: name(of: variant), id: "wx000000000000000\(index + 1)", secret: "simulated-secret-\(index + 1)",
            variant: variant, isOurs: true)
    }

    private init(name: String, id: String, secret: String, variant: WeChatSimulator.App.Variant, isOurs: Bool) {
        (self.name, self.id, self.secret, self.variant, self.isOurs) = (name, id, secret, variant, isOurs)
    }

    private init?(_ order: String, number: Int) {
        guard let first = order.firstIndex(of: ":"), let last = order.lastIndex(of: ":"), first < last else {
            return nil
        }
        let (id, secret) = (order[..<first], order[order.index(after: first)..<last])
        let digits = id.utf8.dropFirst(2)
        guard let variant = WeChatSimulator.App.Variant(rawValue: String(order[order.index(after: last)...])),
            id.hasPrefix("wx"), digits.count == 16, digits.allSatisfy(Self.isHexadecimal),
            !secret.isEmpty, secret.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
        else { return nil }
        self.init(
            name: "\(Self.name(of: variant))\(number == 1 ? "" : String(number))", id: String(id),
            secret: String(secret), variant: variant, isOurs: false)
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
