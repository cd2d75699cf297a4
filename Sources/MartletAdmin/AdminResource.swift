/// What the path of a request to the admin listener names, and what may be done with it.
enum AdminResource: Equatable {
    case alive, ready
    case metrics
    case file(DashboardFile)
    case status, routes, upstreams, providers, store, accounts
    case explain, events
    case logLevel
    case drain(upstream: String)
    case restore(upstream: String)
    case refresh(provider: String)
    case claims(subject: String)
    case sessions
    case session(String)
    case subject(String)
    case sessionsOf(subject: String)
    case disable(subject: String)
    case enable(subject: String)
    case reload

    /// - Parameter path: normalized, with its escapes.
    init?(path: String) {
        let parts = path.split(separator: "/", omittingEmptySubsequences: false).dropFirst().map(Self.unescaped)
        guard parts.allSatisfy({ $0 != nil }) else { return nil }
        let names = parts.compactMap(\.self)
        switch names.count {
        case 1:
            let file = DashboardFile(rawValue: names[0]).map { AdminResource.file($0) }
            guard let page = Self.pages[names[0]] ?? file else { return nil }
            self = page
        case 2 where names == ["log", "level"]: self = .logLevel
        case 2 where names[0] == "sessions" && !names[1].isEmpty: self = .session(names[1])
        case 2 where names[0] == "subjects" && !names[1].isEmpty: self = .subject(names[1])
        case 3 where !names[1].isEmpty: self.init(names[0], names[1], names[2])
        default: return nil
        }
    }

    private static let pages: [String: AdminResource] = [
        "livez": .alive, "readyz": .ready, "healthz": .ready, "metrics": .metrics, "status": .status,
        "routes": .routes, "upstreams": .upstreams, "providers": .providers, "store": .store, "accounts": .accounts,
        "explain": .explain, "events": .events, "reload": .reload, "sessions": .sessions,
    ]

    private init?(_ collection: String, _ name: String, _ action: String) {
        switch (collection, action) {
        case ("upstreams", "drain"): self = .drain(upstream: name)
        case ("upstreams", "restore"): self = .restore(upstream: name)
        case ("providers", "refresh"): self = .refresh(provider: name)
        case ("subjects", "claims"): self = .claims(subject: name)
        case ("subjects", "sessions"): self = .sessionsOf(subject: name)
        case ("subjects", "disable"): self = .disable(subject: name)
        case ("subjects", "enable"): self = .enable(subject: name)
        default: return nil
        }
    }

    var methods: [String] {
        switch self {
        case .alive, .ready, .metrics, .file, .status, .routes, .upstreams, .providers, .store, .accounts,
            .explain, .events, .sessions:
            ["GET", "HEAD"]
        case .claims: ["GET", "HEAD", "PATCH"]
        case .subject: ["GET", "HEAD", "DELETE"]
        case .session, .sessionsOf: ["DELETE"]
        case .drain, .restore, .refresh, .logLevel, .reload, .disable, .enable: ["POST"]
        }
    }

    /// What a request with one of its methods needs.
    func need(_ method: String) -> AdminAccess.Need {
        switch self {
        case .alive, .ready, .file: .probe
        case .metrics: .metrics
        default: method == "GET" || method == "HEAD" ? .reading : .change
        }
    }

    /// A part of a path without its escapes; `nil` if they are malformed.
    private static func unescaped(_ part: Substring) -> String? {
        var bytes: [UInt8] = []
        var rest = part.utf8[...]
        while let byte = rest.popFirst() {
            guard byte == 0x25 else {
                bytes.append(byte)
                continue
            }
            guard let high = rest.popFirst().flatMap(hexadecimal), let low = rest.popFirst().flatMap(hexadecimal)
            else { return nil }
            bytes.append(high << 4 | low)
        }
        return String(validating: bytes, as: UTF8.self)
    }

    private static func hexadecimal(_ byte: UInt8) -> UInt8? {
        switch byte {
        case 0x30...0x39: byte - 0x30
        case 0x41...0x46: byte - 0x41 + 10
        case 0x61...0x66: byte - 0x61 + 10
        default: nil
        }
    }
}
