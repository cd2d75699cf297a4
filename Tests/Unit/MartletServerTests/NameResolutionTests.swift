import MartletConfig
import MartletCore
import MartletIO
import MartletTesting
import MartletUpstreams
import Testing

@testable import MartletDecisions
@testable import MartletServer

@Suite struct `Addresses of upstream host names` {
    private final class Stage: Sendable {
        let server: DNSServer
        let names: NameResolution
        let log = LogRecorder()
        /// What was published of changes, and of all names.
        let published = Box<[[ResolvedName]]>([])
        let reported = Box<[[ResolvedName]]>([])
        private let loop: ServiceLoop
        private let task = Box<Task<Void, Never>?>(nil)

        init(deadline: Duration = .seconds(20), _ script: @escaping DNSServer.Script) throws {
            server = try DNSServer(script)
            loop = try ServiceLoop(name: "names")
            names = NameResolution(
                NameResolver(on: loop, servers: server.address, deadline: deadline), clock: .system,
                logger: Logger(log, minimum: .info))
            names.attach(
                NameResolution.Observer(
                    changed: { [published] names in published.withLock { $0.append(names) } },
                    all: { [reported] names in reported.withLock { $0.append(names) } }))
        }

        deinit {
            task.value?.cancel()
            names.stop()
            loop.shutdown()
        }

        /// The addresses of a configuration as its loops would get them.
        func adopt(_ upstreams: [UpstreamConfiguration]) async -> [String] {
            await names.prepare(upstreams)
            var all: [ResolvedName] = []
            names.follow(upstreams) { all = $0 }
            return all.map(`Addresses of upstream host names`.text)
        }

        func run() { task.withLock { $0 = Task { [names] in await names.run() } } }
    }

    private static func text(_ name: ResolvedName) -> String {
        "\(name.upstream) \(EndpointText.url(name.endpoint)): "
            + name.addresses.map(\.description).joined(separator: " ")
    }

    private func upstreams(_ text: String) throws -> [UpstreamConfiguration] {
        let (configuration, diagnostics) = GatewayConfiguration.decode(
            text: Array("version: 1\nupstreams: { \(text) }\nroutes: [{ name: a, auth: none, upstream: api }]\n".utf8),
            file: "test.yaml", environment: { _ in nil }, knownKinds: [])
        return try #require(configuration, "\(diagnostics)").upstreams
    }

    private func a(_ question: DNSServer.Question, _ last: UInt8...) -> DNSServer.Response {
        question.type == 1
            ? .records(last.map { .address(question.name, [10, 0, 0, $0], seconds: 1) }) : .records([])
    }

    @Test func `each upstream gets the addresses by its own rules`() async throws {
        let stage = try Stage { question in
            question.type == 1
                ? .records([
                    .address(question.name, [10, 0, 0, 2], seconds: 60),
                    .address(question.name, [10, 0, 0, 1], seconds: 60),
                ])
                : .records([.address(question.name, [0xFD] + [UInt8](repeating: 0, count: 14) + [1], seconds: 60)])
        }
        let all = try upstreams(
            """
            api: { endpoints: ["http://a.test:81", "https://a.test", "http://10.0.0.9", "unix:/a"] },
            one: { endpoints: ["http://a.test:81"], dns: { all_addresses: false } },
            six: { endpoints: ["http://a.test:81"], dns: { family: ipv6 } },
            """)
        #expect(
            await stage.adopt(all) == [
                "api http://a.test:81: 10.0.0.1:81 10.0.0.2:81 [fd00::1]:81",
                "api https://a.test: 10.0.0.1:443 10.0.0.2:443 [fd00::1]:443",
                "one http://a.test:81: 10.0.0.1:81",
                "six http://a.test:81: [fd00::1]:81",
            ])
        // Once for both families and once for one.
        #expect(stage.server.questions.count == 3)
        // A reload asks only for what is new.
        let more = try upstreams(
            "api: { endpoints: [\"http://a.test:82\", \"http://b.test\"], dns: { family: any } }")
        #expect(
            await stage.adopt(more) == [
                "api http://a.test:82: 10.0.0.1:82 10.0.0.2:82 [fd00::1]:82",
                "api http://b.test: 10.0.0.1:80 10.0.0.2:80 [fd00::1]:80",
            ])
        #expect(stage.server.questions.count == 5)
        #expect(stage.published.value.isEmpty)
    }

    @Test func `new addresses are published when the old ones are no longer valid, and only those`() async throws {
        let stage = try Stage { [self] in a($0, 1) }
        let all = try upstreams("api: { endpoints: [\"http://a.test\", \"http://b.test\"] }")
        #expect(await stage.adopt(all) == ["api http://a.test: 10.0.0.1:80", "api http://b.test: 10.0.0.1:80"])
        stage.run()
        try await eventually("both are looked up again") { stage.server.questions.count > 6 }
        #expect(stage.published.value.isEmpty)
        stage.server.respond { [self] in $0.name == "a.test" ? a($0, 3, 2) : a($0, 1) }
        try await eventually("the change is published") { !stage.published.value.isEmpty }
        #expect(stage.published.value[0].map(Self.text) == ["api http://a.test: 10.0.0.2:80 10.0.0.3:80"])
        try await eventually("all are reported") { !stage.reported.value.isEmpty }
        #expect(
            stage.reported.value[0].map(Self.text) == [
                "api http://a.test: 10.0.0.2:80 10.0.0.3:80", "api http://b.test: 10.0.0.1:80",
            ])
        let count = stage.server.questions.count
        try await eventually("they are looked up further") { stage.server.questions.count > count + 6 }
        #expect(stage.published.value.count == 1 && stage.reported.value.count == 1)
        #expect(stage.log.lines.isEmpty)
    }

    @Test func `an unknown name has no addresses, and gets them when it is known`() async throws {
        let stage = try Stage { _ in .code(3) }
        let all = try upstreams("api: { endpoints: [\"http://a.test\"], dns: { refresh: 1s } }")
        #expect(await stage.adopt(all) == ["api http://a.test: "])
        stage.run()
        let count = stage.server.questions.count
        try await eventually("it is looked up again") { stage.server.questions.count > count + 2 }
        stage.server.respond { [self] in a($0, 1) }
        try await eventually("it is published") { !stage.published.value.isEmpty }
        #expect(stage.published.value[0].map(Self.text) == ["api http://a.test: 10.0.0.1:80"])
        try await eventually("the end is logged") { stage.log.lines.count == 2 }
        let lines = stage.log.texts
        #expect(
            lines[0]
                == "warning upstream host name could not be resolved host=a.test code=resolver.name_unknown "
                + "reason='a.test': the name does not exist")
        #expect(lines[1].hasPrefix("info upstream host name resolved again host=a.test seconds="))
    }

    @Test func `a name that is lost later keeps its addresses for ten times refresh`() async throws {
        let stage = try Stage { [self] in a($0, 1) }
        let all = try upstreams("api: { endpoints: [\"http://a.test\"], dns: { refresh: 1s } }")
        let stopwatch = Stopwatch()
        _ = await stage.adopt(all)
        stage.server.respond { _ in .code(2) }
        stage.run()
        try await eventually("the name has no address") { !stage.published.value.isEmpty }
        #expect(stopwatch.elapsed > .seconds(9))
        #expect(stage.published.value[0].map(Self.text) == ["api http://a.test: "])
        #expect(stage.log.texts.contains("warning upstream host name has no address any more host=a.test"))
    }

    @Test func `silence delays a start until the deadline`() async throws {
        let stage = try Stage(deadline: .milliseconds(300)) { _ in .silence }
        let text = (0..<200).map { "\"http://n\($0).test\"" }.joined(separator: ", ")
        let all = try upstreams("api: { endpoints: [\(text)] }")
        #expect(await stage.adopt(all).count == 200)
        #expect(stage.log.lines.count == 200)
    }

    @Test func `too many addresses are logged once`() async throws {
        let stage = try Stage { question in
            question.type == 1
                ? .records(
                    (0..<1001).map { .address(question.name, [10, 0, UInt8($0 / 256), UInt8($0 % 256)], seconds: 1) })
                : .records([])
        }
        let all = try upstreams("api: { endpoints: [\"http://a.test\"], dns: { refresh: 1s } }")
        await stage.names.prepare(all)
        stage.names.follow(all) { #expect($0.first?.addresses.count == 1000) }
        stage.run()
        let count = stage.server.questions.count
        try await eventually("it is looked up again") { stage.server.questions.count > count + 6 }
        #expect(
            stage.log.texts == [
                "warning upstream host name has too many addresses host=a.test addresses=1001 used=1000"
            ])
    }
}
