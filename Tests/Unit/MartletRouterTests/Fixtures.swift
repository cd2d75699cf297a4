import MartletCore
import MartletJSON
import MartletProvider

@testable import MartletConfig
@testable import MartletRouter

/// The position of everything in the simulated file.
let somewhere = SourceLocation(file: "config.yaml", line: 1, column: 1)

func located(_ text: String) -> Located<String> { Located(text, at: somewhere) }

/// A decoded route; tests set only what they need.
func route(
    _ name: String = "r", hosts: [String] = [], path: RouteConfiguration.PathPattern = .any, methods: [String] = [],
    auth: RouteConfiguration.Authentication = .required(providers: ["apple"]),
    authorize: [ConditionConfiguration] = [], maximumAge: Duration? = nil, set: [HeaderConfiguration]? = nil,
    remove: [String] = [], strip: String? = nil, body: RouteConfiguration.BodyLimit = .inherited,
    upstream: String = "api"
) -> RouteConfiguration {
    RouteConfiguration(
        name: located(name), hosts: hosts.map { located($0) }, path: path, methods: methods, authentication: auth,
        credentials: [.session, .direct],
        authorize: authorize, maximumAge: maximumAge, setHeaders: set, removeHeaders: remove,
        stripPrefix: strip.map { located($0) }, bodyLimit: body, forwardsCredentials: false, upstream: located(upstream)
    )
}

func glob(_ pattern: String) -> RouteConfiguration.PathPattern { .glob(located(pattern)) }
func regex(_ pattern: String) -> RouteConfiguration.PathPattern { .regex(located(pattern)) }

func header(
    _ name: String, _ value: HeaderConfiguration.Value, _ encoding: HeaderConfiguration.Encoding = .percent,
    join: String? = nil, fallback: String? = nil
) -> HeaderConfiguration {
    HeaderConfiguration(name: located(name), value: value, encoding: encoding, join: join, fallback: fallback)
}

/// The result of a compilation.
struct Compilation {
    let table: RouteTable?
    let diagnostics: Diagnostics

    init(_ routes: [RouteConfiguration], paths: PathOptions = PathOptions()) {
        var diagnostics = Diagnostics()
        table = RouteTable.compile(
            routes, mounts: [], upstreams: ["web", "api"], providers: ["apple", "wechat"], paths: paths,
            limits: Limits(),
            into: &diagnostics)
        self.diagnostics = diagnostics
    }

    var codes: [ErrorCode] { diagnostics.all.map(\.code) }
}

/// A table whose compilation must succeed.
func compiled(_ routes: [RouteConfiguration], paths: PathOptions = PathOptions()) throws -> RouteTable {
    let compilation = Compilation(routes, paths: paths)
    guard let table = compilation.table else { throw CompilationError(text: compilation.diagnostics.description) }
    return table
}

struct CompilationError: Error {
    let text: String
}

extension RouteTable {
    func match(_ method: String = "GET", _ path: String, host: String = "") -> MartletRouter.RouteMatch {
        let (method, host, path) = (Array(method.utf8), Array(host.utf8), Array(path.utf8))
        return match(method: method.span, authority: host.span, path: path.span)
    }
}

func identity(_ claims: JSONObject, issuedAt: Int64 = 1_000) -> Identity {
    Identity(
        providerSubject: "001.abc", issuer: "https://appleid.apple.com", claims: claims,
        authTime: UnixTime(seconds: 900), issuedAt: UnixTime(seconds: issuedAt), expiresAt: UnixTime(seconds: 5_000))
}

/// A principal who authenticated at a moment.
func principal(_ claims: JSONObject = [:], authTime: Int64) -> Principal {
    let known = identity(claims, issuedAt: 1_000)
    let identity = Identity(
        providerSubject: known.providerSubject, issuer: known.issuer, claims: claims,
        authTime: UnixTime(seconds: authTime), issuedAt: known.issuedAt, expiresAt: known.expiresAt)
    return Principal(identity: identity, provider: "apple", sessionID: nil)
}

func principal(_ claims: JSONObject = [:], issuedAt: Int64 = 1_000, sessionID: String? = nil) -> Principal {
    Principal(identity: identity(claims, issuedAt: issuedAt), provider: "apple", sessionID: sessionID)
}
