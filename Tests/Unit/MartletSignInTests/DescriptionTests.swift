import Foundation
import MartletConfig
import MartletJSON
import MartletResponder
import MartletTesting
import Testing

@testable import MartletSignIn

/// The description of the endpoints; the responses in this module's other tests are checked against it too.
@Suite struct `The description` {
    private static let file = URL(filePath: #filePath).deletingLastPathComponent()
        .appending(path: "../../../Sources/MartletServer/Documentation.docc/openapi.json").standardized

    @Test func `is served where the endpoints are`() async throws {
        let reply = await Stand { $0.configuration.path = "/sign-in" }.send("GET", "/sign-in/openapi.json")
        #expect(reply.status == 200 && reply.field("Content-Type") == "application/json")
        #expect(reply["openapi"] == "3.1.0")
        let described = APIDescription(reply.object).operations
        // Two for each of the two providers with a login.
        #expect(described.count == 29)
        for name in ["apple", "password"] {
            #expect(described.contains { $0.method == "POST" && $0.path == "/sign-in/login/\(name)" })
            #expect(described.contains { $0.method == "POST" && $0.path == "/sign-in/link/\(name)" })
        }
        #expect(!described.contains { $0.path.contains("bearer") || $0.path == "/sign-in/login/{provider}" })
        #expect(described.contains { $0.method == "GET" && $0.path == "/.well-known/jwks.json" })
    }

    @Test func `is the file of the documentation`() throws {
        let document = OpenAPI.document(path: "/auth")
        if ProcessInfo.processInfo.environment["MARTLET_WRITE_OPENAPI"] != nil {
            try Data(Self.text(.object(document), indented: "").utf8 + [0x0A]).write(to: Self.file)
        }
        let limits = JSONLimits(maximumDepth: 32, maximumBytes: 1 << 20)
        #expect(try JSON.parse(Array(Data(contentsOf: Self.file)), limits: limits) == .object(document))
    }

    @Test func `names every method of every path, and no other`() {
        let apple = OpenAPI.Login(name: "apple", kind: "apple")
        let described = APIDescription(OpenAPI.document(path: "/auth", logins: [apple])).operations
        for (path, allow) in `Paths and methods`.methods {
            let template = path.replacing("/ses_1", with: "/{id}")
                .replacing("/apple/notifications", with: "/{provider}/notifications")
            // Identities of former providers can be unlinked, too.
            let templates = [template, template.replacing("/link/apple", with: "/link/{provider}")]
            let methods = Set(described.filter { templates.contains($0.path) }.map(\.method))
            #expect(methods == Set(allow.split(separator: ", ").map(String.init)).subtracting(["HEAD"]), "\(path)")
        }
        #expect(Set(described.map(\.path)).count == `Paths and methods`.methods.count + 1)
    }

    /// What generators have no good type for: a body of several types, and a list of values that grows.
    @Test func `gives each login operations and a type of its own`() throws {
        let logins = [
            OpenAPI.Login(name: "apple", kind: "apple"), OpenAPI.Login(name: "company-eu", kind: "oidc"),
            OpenAPI.Login(name: "company.eu", kind: "oidc"), OpenAPI.Login(name: "partner", kind: "a_plugin"),
        ]
        let document = OpenAPI.document(path: "/auth", logins: logins)
        let described = APIDescription(document).operations
        let ids = described.compactMap { $0.operation["operationId"]?.string }
        #expect(ids.count == described.count && Set(ids).count == ids.count)
        func schema(_ path: String) -> String? {
            let operation = described.first { $0.path == path && $0.method == "POST" }?.operation
            return operation?["requestBody"]?.object?["content"]?.object?["application/json"]?.object?["schema"]?
                .object?["$ref"]?.string
        }
        for (name, id, type) in [
            ("apple", "loginApple", "AppleLogin"), ("company-eu", "loginCompanyEu", "OpenIDLogin"),
            ("company.eu", "loginCompanyEu_", "OpenIDLogin"), ("partner", "loginPartner", "OtherLogin"),
        ] {
            #expect(ids.contains(id))
            #expect(schema("/auth/login/\(name)") == "#/components/schemas/\(type)")
            #expect(schema("/auth/link/\(name)") == "#/components/schemas/\(type)")
        }
        let text = String(decoding: JSON.write(.object(document)), as: UTF8.self)
        for unsuited in ["anyOf", "oneOf", "x-www-form-urlencoded"] { #expect(!text.contains(unsuited)) }
        let schemas = try #require(document["components"]?.object?["schemas"]?.object)
        for (name, member) in [("Problem", "code"), ("BodyError", "code"), ("Tokens", "token_type")] {
            let described = schemas[name]?.object?["properties"]?.object?[member]?.object
            #expect(described?["type"] == "string" && described?["enum"] == nil, "\(name)")
        }
        let again = try #require(schemas["Reauthentication"]?.object?["properties"]?.object)
        #expect(again["nonce"] != nil && again["app"] != nil)
    }

    @Test func `names the cookie that browsers have`() {
        func name(_ cookie: String?) -> String? {
            OpenAPI.document(path: "/auth", cookie: cookie)["components"]?.object?["securitySchemes"]?
                .object?["cookie"]?.object?["name"]?.string
        }
        #expect(name(nil) == "__Host-martlet" && name("martlet") == "martlet")
    }

    @Test func `has the forms where they are asked for`() async throws {
        let stand = Stand()
        let bodies = [
            await stand.send("GET", "/auth/openapi.json"), await stand.send("GET", "/auth/openapi.json?forms=true"),
        ].map { String(decoding: $0.response.body, as: UTF8.self) }
        #expect(bodies.map { $0.contains("x-www-form-urlencoded") } == [false, true])
    }

    @Test func `has no dangling references`() {
        let document = OpenAPI.document(path: "/auth")
        let schema = JSONSchema(document: document)
        var references = 0
        func walk(_ value: JSONValue) {
            for element in value.array ?? [] { walk(element) }
            guard let object = value.object else { return }
            if object["$ref"] != nil {
                references += 1
                #expect(schema.resolve(object) != nil, "\(object)")
            }
            for member in object.members { walk(member.value) }
        }
        walk(.object(document))
        #expect(references > 80)
    }

    /// Generators write a file for every object with members, and for every enumeration, wherever it stands.
    @Test func `gives a client at most 30 models`() {
        var models: [String] = []
        func walk(_ value: JSONValue, _ name: String) {
            for element in value.array ?? [] { walk(element, name) }
            guard let object = value.object else { return }
            if object["properties"] != nil || (object["enum"] != nil && object["in"] == nil) { models.append(name) }
            for member in object.members where !["example", "examples", "parameters"].contains(member.name) {
                walk(member.value, member.name)
            }
        }
        walk(.object(OpenAPI.document(path: "/auth")), "document")
        #expect(models.count > 20 && models.count <= 30, "\(models.count): \(models)")
    }

    @Test func `detects undescribed responses`() {
        let described = APIDescription(OpenAPI.document(path: "/auth"))
        func findings(_ status: Int, _ body: String) -> [String] {
            let fields = [(name: "Content-Type", value: "application/json"), ("Cache-Control", "no-store")]
            return described.findings(
                "POST", "/auth/nonce", .init(status: status, fields: fields, body: Array(body.utf8)))
        }
        #expect(findings(200, #"{"nonce":"0123456789012345678901","expires_in":300}"#) == [])
        #expect(findings(200, #"{"nonce":"0123456789012345678901","expires_in":300,"x":1}"#).count == 1)
        #expect(findings(200, #"{"nonce":"short","expires_in":"300"}"#).count == 2)
        #expect(findings(200, "[]").count == 1)
        #expect(findings(200, "x").count == 1)
        #expect(findings(418, "{}").count == 1)
    }

    @Test func `has all of its codes in the guide`() throws {
        let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../..").standardized
        func text(_ path: String) throws -> String {
            try String(contentsOf: root.appending(path: "Sources/\(path)"), encoding: .utf8)
        }
        let guide = try text("MartletServer/Documentation.docc/SigningIn.md")
        let sources = try [
            "MartletSignIn/ErrorCode+SignIn.swift", "MartletIdentities/AccountSessions.swift",
            "MartletProvider/SigningIn.swift",
        ].map(text).joined()
        let codes = Set(sources.matches(of: /"(signin\.[a-z_]+)"/).map { String($0.1) })
        #expect(codes.count > 15)
        for code in codes { #expect(guide.contains("`\(code)`"), "SigningIn.md does not list \(code)") }
        let rows = Set(guide.matches(of: /`(signin\.[a-z_]+)`/).map { String($0.1) })
        #expect(rows == codes)
        for line in guide.split(separator: "\n") where line.hasPrefix("| `signin.") {
            let cells = line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
            #expect(cells.count == 4 && cells[3].contains { $0.isLetter }, "why is \(cells[0]) rejected?")
        }
    }

    /// The document, indented.
    private static func text(_ value: JSONValue, indented margin: String) -> String {
        let inner = margin + "  "
        func lines(_ parts: [String], _ open: String, _ close: String) -> String {
            let line = open + parts.joined(separator: ", ") + close
            guard line.utf8.count + margin.utf8.count > 100 || line.contains("\n") else { return line }
            return "\(open)\n\(inner)" + parts.joined(separator: ",\n\(inner)") + "\n\(margin)\(close)"
        }
        switch value {
        case .object(let object):
            return lines(
                object.members.map { member in
                    "\(String(decoding: JSON.write(.string(member.name)), as: UTF8.self)): "
                        + text(member.value, indented: inner)
                }, "{", "}")
        case .array(let elements): return lines(elements.map { text($0, indented: inner) }, "[", "]")
        default: return String(decoding: JSON.write(value), as: UTF8.self)
        }
    }
}
