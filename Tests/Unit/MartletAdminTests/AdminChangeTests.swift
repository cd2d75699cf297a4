import MartletAudit
import MartletCore
import MartletIO
import MartletJSON
import MartletResponder
import Testing

@testable import MartletAdmin

@Suite struct `Changes by operators in the audit log` {
    private static let token = "0123456789abcdef0123456789abcdef"

    private func members(
        _ path: String, _ access: AdminAccess, _ fields: [(name: String, value: String)] = [],
        certificate: [UInt8]? = nil, response: LocalResponse = .text(200, "application/json", "{}\n"),
        over socket: String? = nil
    ) throws -> JSONObject {
        var request = LocalRequest(
            method: "POST", path: path, query: "", fields: fields, body: [], bodyBytes: 0, client: "127.0.0.1",
            requestID: "r1",
            local: socket.flatMap { SocketEndpoint(path: $0) } ?? SocketEndpoint(literal: "127.0.0.1", port: 9901))
        request.clientCertificate = certificate
        return try #require(AdminChange(request, access)).event(response).members
    }

    @Test func `name what speaks for the caller, but never the credential`() throws {
        let bearer = [(name: "Authorization", value: "Bearer \(Self.token)")]
        let (open, protected) = (
            AdminAccess(token: nil, isPrivate: { _ in true }), AdminAccess(token: Secret(Self.token))
        )
        #expect(try members("/reload", open, over: "/run/a.sock")["credential"] == "local")
        #expect(try members("/reload", open)["credential"] == nil)
        let asked = try members("/reload", protected, bearer)
        #expect(asked["credential"] == "token" && asked["certificate"] == nil)
        #expect(!String(decoding: JSON.write(.object(asked)), as: UTF8.self).contains(Self.token))
        let certified = AdminAccess(token: Secret(Self.token), acceptsCertificates: true)
        #expect(try members("/reload", certified, bearer, certificate: [0x30])["credential"] == "certificate")
        #expect(try members("/reload", certified, bearer)["credential"] == "token")
        // Nothing speaks for a caller who is rejected.
        let rejected = try members("/reload", protected, response: AdminProblem.credentialMissing.response("r1"))
        #expect(rejected["credential"] == nil && rejected["outcome"] == "rejected")
    }

    @Test func `say what was asked, as far as it was valid`() throws {
        let access = AdminAccess(token: nil)
        let endpoint = LocalResponse.text(
            200, "application/json", #"{"upstream":"api","endpoint":"http://a:1","state":"draining"}"#)
        for path in ["/upstreams/api/drain", "/upstreams/api/restore"] {
            #expect(try members(path, access, response: endpoint)["endpoint"] == "http://a:1")
        }
        let level = LocalResponse.text(200, "application/json", #"{"level":"debug","seconds":600}"#)
        let changed = try members("/log/level", access, response: level)
        #expect(changed["level"] == "debug" && changed["seconds"] == 600)
        let lasting = LocalResponse.text(200, "application/json", #"{"level":"debug","seconds":null}"#)
        #expect(try members("/log/level", access, response: lasting)["seconds"] == nil)
        let unknown = LocalResponse.text(404, "application/problem+json", #"{"endpoint":"http://x"}"#)
        #expect(try members("/upstreams/api/drain", access, response: unknown)["endpoint"] == nil)
        #expect(try members("/reload", access, response: level)["level"] == nil)
    }

    @Test func `are no requests that read`() {
        for method in ["GET", "HEAD", "OPTIONS"] {
            #expect(AdminChange(adminRequest(method, "/status"), AdminAccess(token: nil)) == nil)
        }
    }
}
