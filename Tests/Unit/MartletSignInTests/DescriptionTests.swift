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
        #expect(described.count == 27)
        #expect(described.contains { $0.method == "POST" && $0.path == "/sign-in/login/{provider}" })
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
        let described = APIDescription(OpenAPI.document(path: "/auth")).operations
        for (path, allow) in `Paths and methods`.methods {
            let template = path.replacing("/login/apple", with: "/login/{provider}")
                .replacing("/link/apple", with: "/link/{provider}").replacing("/ses_1", with: "/{id}")
                .replacing("/apple/notifications", with: "/{provider}/notifications")
            let methods = Set(described.filter { $0.path == template }.map(\.method))
            #expect(methods == Set(allow.split(separator: ", ").map(String.init)).subtracting(["HEAD"]), "\(path)")
        }
        #expect(Set(described.map(\.path)).count == `Paths and methods`.methods.count)
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
        #expect(references > 90)
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
        let sources = try text("MartletSignIn/ErrorCode+SignIn.swift") + text("MartletProvider/SigningIn.swift")
        let codes = Set(sources.matches(of: /"(signin\.[a-z_]+)"/).map { String($0.1) })
        #expect(codes.count > 15)
        for code in codes { #expect(guide.contains("`\(code)`"), "SigningIn.md does not list \(code)") }
        let rows = Set(guide.matches(of: /`(signin\.[a-z_]+)`/).map { String($0.1) })
        #expect(rows == codes)
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
