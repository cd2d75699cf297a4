import Foundation
import MartletTesting
import Testing

/// How an API takes the name of a field for that of a variable.
private enum Folding: String, CaseIterable {
    /// `-` becomes `_`.
    case wsgi
    /// Whatever is no letter or digit becomes `_`.
    case cgi
    /// Letters and digits alone decide.
    case letters

    func name(_ field: String) -> String {
        let upper = field.uppercased()
        switch self {
        case .wsgi: return upper.replacingOccurrences(of: "-", with: "_")
        case .cgi: return String(upper.map { $0.isASCII && ($0.isLetter || $0.isNumber) ? $0 : "_" })
        case .letters: return upper.filter { $0.isASCII && ($0.isLetter || $0.isNumber) }
        }
    }

    /// What the application reads of a header, without the empty fields.
    func read(_ name: String, in request: HTTPMessage) -> [String] {
        request.fields.filter { self.name($0.name) == self.name(name) && !$0.value.isEmpty }.map(\.value)
    }
}

/// A client's identity headers in every spelling, through every real proxy, to an API that folds names.
@Suite struct `Spellings of identity headers` {
    private static let names = [
        ["X", "Auth", "Subject"], ["X", "Auth", "Provider"], ["X", "Auth", "Email"], ["X", "Auth", "Assertion"],
        ["X", "User", "Id"],
    ]
    private static let separators = ["-", "_", ".", ""]
    /// What stands between the parts of a name; every other one that a name may have, but for `%`.
    private static let pairs: [(String, String)] =
        separators.flatMap { first in separators.map { (first, $0) } }
        + "!#$&'*+^`|~".map { (String($0), String($0)) } + [("-", "~"), ("-_", "-"), ("__", "_")]
    private static let routes = """
        - { name: public, match: { path: /public/** }, auth: none }
        - { name: own, match: { path: /own/** }, auth: { providers: [apple] }, headers: { set: { X-User-Id: { attribute: subject } } } }
        - { name: closed, match: { path: /v1/** }, auth: { providers: [apple] } }
        """
    private static let subject = "apple:001234.0123456789abcdef0123456789abcdef.0001"

    /// What the API reads of one header where the client has sent it in one spelling.
    private static func outcome(
        _ response: HTTPMessage, _ name: String, _ before: Int, _ api: ScriptedUpstream
    ) -> String {
        guard api.requests.count > before, let request = api.requests.last else { return "\(response.status)" }
        let read = Set(Folding.allCases.flatMap { $0.read(name, in: request) })
        if read.contains(where: { $0.contains("root") }) { return "FORGED" }
        return read.isEmpty ? "nobody" : "caller"
    }

    @Test(arguments: ExampleProxy.Kind.available)
    func `reach no API`(_ kind: ExampleProxy.Kind) throws {
        try withAppleGateway(routes: Self.routes, server: "trusted_proxies: [127.0.0.1/32]") {
            gateway, api, apple throws in
            let proxy = try ExampleProxy(kind, gateway: gateway.endpoint, api: api.endpoint, addsName: true)
            let token = bearer(try apple.token())
            var lines: [String] = []
            for (path, credential) in [("/public/x", []), ("/v1/x", token), ("/own/x", token)] {
                for parts in Self.names {
                    let name = parts.joined(separator: "-")
                    // What the API gets of this name where no client meddles.
                    _ = try proxy.exchange("GET", path, credential)
                    let request = try #require(api.requests.last, "\(proxy.errors.suffix(2000))")
                    let expected = Folding.cgi.read(name, in: request)
                    var cells: [String] = []
                    for (first, second) in Self.pairs {
                        let spelled = parts[0] + first + parts[1] + second + parts[2]
                        for field in [spelled, spelled.lowercased(), spelled.uppercased()] {
                            let before = api.requests.count
                            let response = try proxy.exchange("GET", path, [(field, "root")] + credential)
                            let outcome = Self.outcome(response, name, before, api)
                            if field == spelled { cells.append("\(spelled)=\(outcome)") }
                            let isSafe = outcome == (expected.isEmpty ? "nobody" : "caller") || outcome == "400"
                            #expect(isSafe, "\(kind) \(path) \(field): \(outcome)")
                            guard outcome != "400", let request = api.requests.last else { continue }
                            for folding in Folding.allCases {
                                #expect(
                                    folding.read(name, in: request) == expected, "\(kind) \(path) \(field): \(request)")
                            }
                        }
                    }
                    lines.append("SPELLINGS\t\(kind)\t\(path)\t\(name)\t\(cells.joined(separator: "\t"))")
                }
            }
            #expect(api.requests.contains { $0["X-Auth-Subject"] == Self.subject })
            print(lines.joined(separator: "\n"))
        }
    }
}
