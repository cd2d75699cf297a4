import MartletConfig
import MartletRouter

/// One table with something of everything that a match can ask.
private let table: RouteTable? = {
    let text = """
        version: 1
        server: { listen: [{ address: 127.0.0.1:0 }] }
        upstreams: { api: { endpoints: ["builtin:echo"] } }
        routes:
          - { name: a, match: { hosts: [api.example.com, "[::1]"], path: /v1/**, methods: [GET] }, auth: none, upstream: api }
          - { name: b, match: { hosts: ["*.example.com", "*.b"], path: /v1/*/x }, auth: none, upstream: api }
          - { name: c, match: { path: /a*b*c/**/d, methods: [POST, BREW-COFFEE] }, auth: none, upstream: api }
          - { name: d, match: { path: /**/y/*/z* }, auth: none, rewrite: { strip_prefix: /abcdefgh }, upstream: api }
          - { name: e, match: { path_regex: "/r/(a|b)+c" }, auth: none, upstream: api }
          - { name: f, match: { path: /abcdefgh/ijklmnopq }, auth: none, rewrite: { strip_prefix: /abcdefgh }, upstream: api }
        """
    let decoded = GatewayConfiguration.decode(
        text: Array(text.utf8), file: "fuzz.yaml", environment: { _ in nil }, knownKinds: [])
    guard let configuration = decoded.configuration else { return nil }
    var diagnostics = decoded.diagnostics
    return RouteTable.compile(
        configuration.routes, mounts: [], upstreams: ["api"], providers: [], paths: configuration.server.paths,
        limits: configuration.server.limits, into: &diagnostics)
}()

/// Any method, host and path: the index says what asking each route in turn says.
///
/// The input is the three, separated by line feeds.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ data: UnsafePointer<UInt8>, _ size: Int) -> CInt {
    guard let table else { fatalError("the table does not compile") }
    let parts = UnsafeBufferPointer(start: data, count: size)
        .split(separator: 0x0A, maxSplits: 2, omittingEmptySubsequences: false).map { Array($0) }
    guard parts.count == 3 else { return 0 }
    let (method, authority, path) = (parts[0], parts[1], parts[2])
    let match = table.match(method: method.span, authority: authority.span, path: path.span)
    let misses = table.misses(method: method.span, authority: authority.span, path: path.span)
    switch match {
    case .route(let index):
        precondition(misses.count == index)
        let rewrite = table.routes[index].rewrite(path: path.span)
        precondition(
            rewrite.strippedBytes <= path.count && rewrite.becomesRoot == (rewrite.strippedBytes == path.count))
    case .failed(let index):
        precondition(misses.count == index)
    case .methodNotAllowed(let set):
        precondition(misses.contains { $0.reason == .method } && !table.allowValue(set).isEmpty)
    case .none:
        precondition(misses.count == table.routes.count && !misses.contains { $0.reason == .method })
    }
    return 0
}
