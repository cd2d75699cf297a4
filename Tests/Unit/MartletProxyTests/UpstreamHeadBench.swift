import MartletCore
import MartletHTTP
import MartletIO
import MartletResponder
import MartletRouter

@testable import MartletConfig
@testable import MartletDecisions
@testable import MartletProxy

/// A configuration with one upstream, and the heads that this gets.
struct UpstreamHeadBench {
    /// What an upstream got, and what the exchange stores.
    struct Outcome {
        let text: String
        let rules: RequestFieldRules
        /// The `Host` line that the gateway wrote, without its line break; empty where it wrote none.
        let hostLine: String
        /// Lower-case names, comma-separated.
        let announced: String

        var lines: [String] { text.split(separator: "\r\n" as Character).map(String.init) }

        /// The lines with a name, in order.
        func fields(_ name: String) -> [String] { lines.filter { $0.hasPrefix(name + ":") } }
    }

    /// What the gateway calls itself in `Via`.
    static let pseudonym = UpstreamHeadBench().snapshot.pseudonym.text

    private static let somewhere = SourceLocation(file: "config.yaml", line: 1, column: 1)

    let snapshot: Snapshot
    /// The route of every request.
    let route: Int
    // The client's connection.
    var isTrusted = false
    var isSecure = false
    var isStream = false
    var address = "192.0.2.1"
    // The request.
    var consumesCredential = false
    /// It has cookies of the gateway.
    var hasCookie = false
    var upgrade = ""
    var identity = ""

    /// - Parameters:
    ///   - host: the `Host` that the upstream gets.
    ///   - strip: the prefix that the route strips.
    ///   - remove: the headers that the route removes.
    ///   - network: of trusted proxies, an IPv4 /24.
    ///   - locked: whether a route before it matches by method, below `/locked/`.
    init(
        host: UpstreamConfiguration.HostPolicy = .keep, strip: String? = nil, remove: [String] = [],
        forwardsCredentials: Bool = false, locked: Bool = false, trusting network: String? = nil,
        browser: BrowserRules? = nil
    ) {
        var last = Self.route("last")
        last.stripPrefix = strip.map { Located($0, at: Self.somewhere) }
        last.removeHeaders = remove
        last.forwardsCredentials = forwardsCredentials
        var routes = [last]
        if locked {
            var restricted = Self.route("locked")
            restricted.path = .glob(Located("/locked/**", at: Self.somewhere))
            restricted.methods = ["GET"]
            routes.insert(restricted, at: 0)
        }
        route = routes.count - 1
        var diagnostics = Diagnostics()
        let table = RouteTable.compile(
            routes, mounts: [], upstreams: ["api"], providers: [], paths: PathOptions(), limits: Limits(),
            into: &diagnostics)
        guard let table else { fatalError(diagnostics.description) }
        let upstream = UpstreamConfiguration(
            name: Located("api", at: Self.somewhere),
            members: [EndpointConfiguration(Located(.http(host: "127.0.0.1", port: 9000), at: Self.somewhere))],
            timeouts: UpstreamTimeouts(), host: host, balance: .roundRobin)
        let server = ServerConfiguration(
            listeners: [], trustedProxies: Self.networks(network), limits: Limits(), paths: PathOptions(),
            timeouts: ServerTimeouts())
        snapshot = Snapshot(
            routes: table, upstreams: [Upstream(upstream)], providers: [], server: server,
            signIn: SignInComponents(
                sessions: nil, subjects: nil, assertion: nil, handler: EchoHandler.respond, browser: browser))
    }

    private static func networks(_ literal: String?) -> [AddressRange] {
        guard let literal, let address = SocketEndpoint(literal: literal, port: 0) else { return [] }
        return [AddressRange(network: address.addressBytes, prefixLength: 120)]
    }

    private static func route(_ name: String) -> RouteConfiguration {
        RouteConfiguration(
            name: Located(name, at: somewhere), hosts: [], path: .any, methods: [], authentication: .none,
            credentials: [.session, .direct], authorize: [], maximumAge: nil, setHeaders: nil, removeHeaders: [],
            stripPrefix: nil, bodyLimit: .inherited, forwardsCredentials: false,
            upstream: Located("api", at: somewhere))
    }

    /// The head for a request.
    func write(_ text: String) -> Outcome {
        let request = Array(text.utf8)
        let parts = [
            request, path(of: request), Array("0123".utf8), Array(upgrade.utf8), Array(identity.utf8),
        ]
        return unsafe Array(parts.joined()).withUnsafeBufferPointer { unsafe write($0, parts.map(\.count)) }
    }

    /// The head for a request with one more field between `Host` and others.
    func write(field: String) -> Outcome {
        write("GET / HTTP/1.1\r\nHost: a\r\n\(field)\r\nPadding-So-That-More-Follows: y\r\n\r\n")
    }

    private func path(of request: [UInt8]) -> [UInt8] {
        var head = RequestHead(maximumFields: 50)
        var parser = RequestParser(maximumHeadBytes: 16_384)
        guard case .complete = parser.parse(request.span, into: &head) else { fatalError("not a head") }
        let received = Array(request[head.path.bounds])
        var normalized = ByteBuffer()
        let outcome = PathNormalizer.normalize(
            received.span, keepsEncodedSlash: false, keepsEncodedPercent: false, into: &normalized)
        if case .rewritten = outcome { return normalized.array }
        return received
    }

    /// - Parameters:
    ///   - memory: the parts one after the other: request, path, ID, upgrade, identity headers.
    ///   - counts: the length of each.
    private func write(_ memory: UnsafeBufferPointer<UInt8>, _ counts: [Int]) -> Outcome {
        func part(_ index: Int) -> UnsafeBufferPointer<UInt8> {
            unsafe memory[ByteRange(start: counts[..<index].reduce(0, +), count: counts[index])]
        }
        let bytes = unsafe part(0)
        var head = RequestHead(maximumFields: 50)
        var parser = RequestParser(maximumHeadBytes: 16_384)
        guard case .complete = unsafe parser.parse(bytes.span, into: &head) else { fatalError("not a head") }
        let request = unsafe ForwardedRequest(
            route: route, upstream: 0, consumesCredential: consumesCredential, expectsContinue: head.expectsContinue,
            hasCookie: hasCookie, isStream: isStream, isPathUnchanged: bytes[head.path].elementsEqual(part(1)),
            framing: head.framing,
            path: part(1), requestID: part(2), upgrade: part(3), identity: part(4))
        var origin = DownstreamOrigin()
        origin.address.text = AddressText(address.utf8)
        origin.address.isTrusted = isTrusted
        origin.rules.isSecure = isSecure
        var trailers = RequestTrailers()
        var out = UpstreamHead("left from an earlier request".utf8)
        let written = unsafe UpstreamHeadWriter.write(
            request, &head, bytes, from: &origin, snapshot, trailers: &trailers, into: &out)
        let (result, hostLine) = unsafe (Array(out.bytes), out.hostLine)
        let line = result[hostLine.start..<hostLine.end].dropLast(2)
        return Outcome(
            text: String(decoding: result, as: UTF8.self), rules: written.rules,
            hostLine: String(decoding: line, as: UTF8.self),
            announced: String(decoding: trailers.announced.array, as: UTF8.self))
    }

    /// The lines of a trailer section that are forwarded.
    func forwarded(trailers lines: String, announced: String = "", announcedOnly: Bool = false) -> String {
        var rules = ExchangeHeaderRules()
        rules.begin(route: route, rules: isTrusted ? [.isTrusted] : snapshot.compiledRoutes[route].rewriting)
        var trailers = RequestTrailers()
        trailers.announced.append(text: announced)
        let bytes = Array(lines.utf8)
        unsafe bytes.withUnsafeBufferPointer {
            unsafe trailers.collect(lines: $0, rules, snapshot, announcedOnly: announcedOnly)
        }
        return String(decoding: trailers.forwarded.array, as: UTF8.self)
    }
}
