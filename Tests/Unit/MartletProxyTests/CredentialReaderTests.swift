import MartletAuthenticator
import MartletDecisionsTesting
import MartletHTTP
import MartletResponder
import MartletRouter
import Testing

@testable import MartletConfig
@testable import MartletDecisions
@testable import MartletProxy

/// Which credential of a request counts.
@Suite struct CredentialReaderTests {
    private static let snapshot: Snapshot = {
        var settings = SampleSettings()
        settings.browser = .sample
        settings.providers = ["tokens"]
        var (required, optional) = (SampleSettings.route("required"), SampleSettings.route("optional"))
        required.authentication = .required(providers: ["tokens"])
        optional.authentication = .optional(providers: ["tokens"])
        settings.routes = [required, optional, SampleSettings.route("none")]
        return settings.snapshot()
    }()

    /// What a reader finds: the credential, or status and reason of the error; then what else it has seen.
    private func read(
        _ fields: [String], method: String = "GET", route name: String = "required", opensWebSocket: Bool = false
    ) throws -> String {
        let lines = ["\(method) /a HTTP/1.1", "Host: app.example.com"] + fields + ["", ""]
        let bytes = Array(lines.joined(separator: "\r\n").utf8)
        var parser = RequestParser(maximumHeadBytes: 16_384)
        var head = RequestHead(maximumFields: 50)
        guard case .complete = parser.parse(bytes.span, into: &head) else { throw Unparsed() }
        let route = try #require(Self.snapshot.routes.routes.firstIndex { $0.name == name })
        var reader = CredentialReader(route: route)
        var client = ClientSide(isSecure: true, isTrusted: false)
        client.opensWebSocket = opensWebSocket
        var text = ""
        unsafe bytes.withUnsafeBufferPointer { raw in
            do throws(Failure) {
                switch unsafe try reader.read(&head, raw, from: client, Self.snapshot) {
                case .none: text = "-"
                case .authorization(let range): text = String(decoding: bytes[range.bounds], as: UTF8.self)
                case .cookie(let range): text = "cookie " + String(decoding: bytes[range.bounds], as: UTF8.self)
                case .header: text = "header"
                case .certificate: text = "certificate"
                }
            } catch {
                text = "\(error.status) \(error.reason)"
            }
        }
        if reader.hasCookie { text += " +cookie" }
        return text + (reader.hasUnusableCookie ? " +unusable" : "")
    }

    private struct Unparsed: Error {}

    private static let session = "Cookie: a=1; __Host-martlet=mct_x"

    @Test func `a request has one credential at most`() throws {
        #expect(try read([]) == "-")
        #expect(try read(["Authorization: Bearer t"]) == "Bearer t")
        #expect(try read([Self.session]) == "cookie mct_x +cookie")
        #expect(try read(["Authorization: Bearer t", "Cookie: a=1"]) == "Bearer t")
        #expect(try read(["Authorization: Bearer t", Self.session]) == "400 auth.two_credentials +cookie")
    }

    @Test func `a route without callers reads no cookie, which the upstream does not get all the same`() throws {
        #expect(try read([Self.session], method: "POST", route: "none") == "- +cookie")
    }

    @Test func `a request that another site may have caused is rejected before its cookie is read`() throws {
        #expect(try read([Self.session], method: "POST") == "403 auth.cross_site +cookie")
        #expect(try read([Self.session], opensWebSocket: true) == "403 auth.cross_site +cookie")
        #expect(try read([Self.session, "Sec-Fetch-Site: same-origin"], method: "POST") == "cookie mct_x +cookie")
    }

    @Test func `cookies of no use are deleted, also where the request is rejected`() throws {
        let twice = "Cookie: __Host-martlet=mct_x; __Host-martlet=mct_y"
        #expect(try read([twice]) == "400 browser.cookie_repeated +cookie +unusable")
        #expect(try read([twice], route: "optional") == "- +cookie +unusable")
        #expect(try read([twice, "Sec-Fetch-Mode: navigate"]) == "- +cookie +unusable")
    }
}
