import MartletConfig
import MartletCore
import MartletJSON
import MartletProvider
import MartletResponder
import MartletServer
import MartletTesting
import Synchronization
import Testing

@testable import MartletCommands

/// Keeps what is logged.
private final class Lines: LogWriting {
    private let lines = Mutex<[String]>([])

    var all: [String] { lines.withLock { $0 } }

    func write(_ level: LogLevel, _ event: String, _ fields: [(String, String)]) {
        lines.withLock { $0.append(([event] + fields.map { "\($0)=\($1)" }).joined(separator: " ")) }
    }
}

private struct Broken: Error, CustomStringConvertible {
    let description = "no such\nperson"
}

@Suite struct `The simulator of a plugin` {
    private let lines = Lines()

    private func respond(
        to request: LocalRequest = Self.request(), by handler: @escaping Simulator.Handler
    ) async -> LocalResponse {
        let service = PluginSimulatorService(Logger(lines, minimum: .error))
        service.serve(handler)
        return await service.handle(request)
    }

    private static func request(body: [UInt8] = [], bodyBytes: Int? = nil) -> LocalRequest {
        LocalRequest(
            method: "POST", path: "/a", query: "b=c", fields: [("X-One", "1")], body: body,
            bodyBytes: bodyBytes ?? body.count, client: "127.0.0.1", requestID: "r")
    }

    @Test func `gets the request, and its response is sent`() async {
        let response = await respond(to: Self.request(body: [1, 2])) { request in
            let parts = [request.method, request.path, request.query, request.header("x-one") ?? ""]
            return SimulatedResponse(
                status: 201, headers: [("X-Two", parts.joined(separator: " "))], body: request.body)
        }
        #expect(response.status == 201 && response.body == [1, 2] && response.fields.count == 1)
        #expect(response.fields.first?.value == "POST /a b=c 1" && lines.all.isEmpty)
        #expect(SimulatedResponse.json(["a": 1]).headers.first?.value == "application/json")
        #expect(SimulatedResponse.text("é", status: 404).body == Array("é".utf8))
    }

    @Test func `costs a response with 500 and a line of the log where it fails`() async {
        let response = await respond { _ in throw Broken() }
        #expect(response.status == 500 && !String(decoding: response.body, as: UTF8.self).contains("person"))
        #expect(lines.all == ["simulator failed path=/a reason=no such\nperson"])
    }

    static let responses: [SimulatedResponse] = [
        SimulatedResponse(status: 0), SimulatedResponse(status: 101), SimulatedResponse(status: 600),
        SimulatedResponse(status: -1), SimulatedResponse(status: 200, headers: [("", "a")]),
        SimulatedResponse(status: 200, headers: [("a b", "a")]), SimulatedResponse(status: 200, headers: [("a:", "a")]),
        SimulatedResponse(status: 200, headers: [("X", "a\r\nSet-Cookie: b")]),
        SimulatedResponse(status: 200, headers: [("X", "a\u{0}")]),
        SimulatedResponse(status: 200, headers: [("content-Length", "7")]),
        SimulatedResponse(status: 200, headers: [("Transfer-Encoding", "chunked")]),
        SimulatedResponse(status: 200, headers: [("X", String(repeating: "a", count: 16 * 1024 + 1))]),
        SimulatedResponse(status: 200, headers: Array(repeating: ("X", "a"), count: 65)),
        SimulatedResponse(status: 200, body: Array(repeating: 0, count: 1024 * 1024 + 1)),
    ]

    @Test(arguments: responses)
    func `is not believed where its response could not be sent`(response: SimulatedResponse) async {
        #expect(await respond { _ in response }.status == 500)
        #expect(lines.all.count == 1)
    }

    @Test func `gets no part of a body that is too large`() async {
        let response = await respond(to: Self.request(body: [1], bodyBytes: 2)) { _ in throw Broken() }
        #expect(response.status == 413 && lines.all.isEmpty)
        let early = await PluginSimulatorService(.silent).handle(Self.request())
        #expect(early.status == 503)
    }
}

/// A kind whose simulator is made by the test.
private struct Sample: Simulating {
    struct Configuration: ConfigurationDecodable {
        init(from reader: inout ConfigurationReader) throws(ConfigurationError) {}
    }

    static let kind: ProviderKind = "sample"
    @TaskLocal static var make: @Sendable (SimulatorSite) throws -> Simulator = { _ in throw Broken() }

    static func validate(_ configuration: Configuration, into diagnostics: inout Diagnostics) {}
    static func simulator(at site: SimulatorSite) throws -> Simulator { try make(site) }

    init(_ configuration: Configuration, context: ProviderContext) throws(ConfigurationError) {}
}

@Suite struct `Plugins of the demo` {
    private static func plugins(
        _ make: @escaping @Sendable (SimulatorSite) throws -> Simulator
    ) throws -> ([DemoPlugins.Entry], [String: [UInt8]]) {
        var registry = ProviderRegistry()
        registry.register(Sample.self)
        let folder = try #require(DemoFolder())
        defer { folder.remove() }
        let entries = try Sample.$make.withValue(make) { try DemoPlugins(registry, folder, .silent).entries }
        return (entries, ["secret-1.txt": (try? readWholeFile("\(folder.path)/secret-1.txt", limit: 100)) ?? []])
    }

    private static func simulator(files: [String: [UInt8]] = [:], _ summary: String = "x") -> Simulator {
        Simulator(
            configuration: ["kind": "other", "text": "${HOME} \"it's\"", "list": [1, true]], files: files,
            demonstrations: [Demonstration(200, summary, target: .gateway(path: "/"))]
        ) { _ in .text("") }
    }

    @Test func `have a block, a route, and files`() throws {
        let (entries, files) = try Self.plugins { site in
            #expect(site.path == "/plugin/sample/hello" && site.folder.hasPrefix("/tmp/martlet-demo-"))
            #expect(site.url.wholeMatch(of: #/http://127\.0\.0\.1:[1-9][0-9]*/#) != nil)
            return Self.simulator(files: ["secret-1.txt": [1, 2]])
        }
        let entry = try #require(entries.first)
        #expect(entries.count == 1 && files == ["secret-1.txt": [1, 2]] && entry.commands.count == 1)
        var diagnostics = Diagnostics()
        let node = ConfigurationNode.parse(
            Array(entry.providerLine.utf8), file: "demo", environment: { _ in nil }, into: &diagnostics)
        #expect(node != nil && diagnostics.isEmpty, "\(diagnostics)")
        #expect(
            entry.providerLine
                == #"sample: {"kind":"sample","text":"$${HOME} \"it's\"","list":[1,true]}"#)
        #expect(entry.routeLine.contains(#"match: { path: "/plugin/sample/**" }, auth: { providers: [sample] }"#))
    }

    @Test func `say why they cannot be shown`() throws {
        func reason(_ make: @escaping @Sendable (SimulatorSite) throws -> Simulator) -> String? {
            do {
                _ = try Self.plugins(make)
                return nil
            } catch let error as StartError {
                return error.exit == .configuration ? error.message : nil
            } catch { return nil }
        }
        let start = "the simulator of kind 'sample': "
        #expect(reason { _ in throw Broken() } == start + #"no such\x0aperson"#)
        #expect(reason { _ in Self.simulator("a\nb") }?.hasPrefix(start + "the demonstration ") == true)
        for name in ["../a", "a/b", "", ".hidden", "A", "a\u{0}"] {
            #expect(reason { _ in Self.simulator(files: [name: []]) }?.contains("name of a file") == true, "\(name)")
        }
    }
}
