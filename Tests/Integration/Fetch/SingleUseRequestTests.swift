import Foundation
import MartletCore
import MartletFetch
import MartletTLS
import MartletTesting
import Testing

/// What must not be sent twice is not, whatever becomes of connections under it.
@Suite(.timeLimit(.minutes(5))) struct `Requests that may be sent once` {
    /// A server and a fetcher that trusts it.
    private struct Pair {
        let server: CuttingServer
        let fetcher: HTTPFetcher
        private let authority: CertificateAuthority?

        init(isSecure: Bool, _ script: @escaping CuttingServer.Script) throws {
            var options = FetchOptions()
            guard isSecure else {
                authority = nil
                server = try CuttingServer(nil, script)
                fetcher = try HTTPFetcher(options)
                return
            }
            let authority = try CertificateAuthority()
            let issued = try authority.issue("wechat", ["IP:127.0.0.1"])
            let identity = TLSIdentityFiles(certificateFile: issued.certificateFile, keyFile: issued.keyFile)
            let context = try TLSServerContext(
                TLSServerOptions(identities: [identity]), tickets: TLSTicketKeys(clock: .system))
            server = try CuttingServer(context, script)
            options.caFile = authority.certificateFile
            fetcher = try HTTPFetcher(options)
            self.authority = authority
        }

        /// Leaves a connection that the next request may use.
        func keepConnection() async throws {
            _ = try await fetcher.get(
                "\(server.url)/warm", for: .provider("w"), timeout: .seconds(10), maximumBytes: 100)
        }

        /// Sends one request and says whether there was a response.
        func send(
            _ path: String, form: [(name: String, value: String)]? = nil, isRepeatable: Bool
        ) async -> Bool {
            let request = HTTPCall(
                "\(server.url)\(path)", content: form.map { .form($0) } ?? .none, timeout: .seconds(10),
                maximumBytes: 100, isRepeatable: isRepeatable)
            return (try? await fetcher.send(request, for: .provider("w"))) != nil
        }
    }

    /// Ends as said the first time, then responds; `/warm` is always answered.
    private static func once(_ ending: CuttingServer.Ending) -> CuttingServer.Script {
        { target, count in target == "/warm" || count > 1 ? .respond : ending }
    }

    private static let form = [(name: "code", value: "c1")]

    @Test(arguments: [false, true], CuttingServer.Ending.allCases)
    func `arrive once, however their connection ends`(isSecure: Bool, ending: CuttingServer.Ending) async throws {
        let pair = try Pair(isSecure: isSecure, Self.once(ending))
        for (path, form) in [("/get?code=1", nil), ("/post", Self.form)] {
            try await pair.keepConnection()
            let isAnswered = await pair.send(path, form: form, isRepeatable: false)
            #expect(isAnswered == (ending == .respond || ending == .expectationFailed), "\(path)")
            // A second one would be sent immediately: time for it to arrive.
            try await Task.sleep(for: .milliseconds(50))
            #expect(pair.server.arrivals[path] == 1, "\(path) after \(ending)")
        }
        pair.fetcher.shutdown()
    }

    @Test func `are refused a second time by libcurl's own question, too`() async throws {
        // libcurl asks before it sends so much, and leaves the question out when that is not liked.
        let pair = try Pair(isSecure: false, Self.once(.expectationFailed))
        let form = [(name: "code", value: String(repeating: "c", count: 2_000_000))]
        #expect(await pair.send("/once", form: form, isRepeatable: false) == false)
        #expect(pair.server.arrivals["/once"] == 1)
        #expect(await pair.send("/twice", form: form, isRepeatable: true))
        #expect(pair.server.arrivals["/twice"] == 2)
        pair.fetcher.shutdown()
    }

    /// The same endings do bring others to be repeated: without that the tests above would show nothing.
    @Test(arguments: [
        (false, CuttingServer.Ending.reset), (false, .close), (true, .reset), (true, .refuse),
    ])
    func `others are repeated by libcurl`(isSecure: Bool, ending: CuttingServer.Ending) async throws {
        let pair = try Pair(isSecure: isSecure, Self.once(ending))
        try await pair.keepConnection()
        #expect(await pair.send("/again", isRepeatable: true))
        #expect(pair.server.arrivals["/again"] == 2)
        #expect(pair.server.protocols == (isSecure ? ["h2"] : ["http/1.1"]))
        pair.fetcher.shutdown()
    }

    @Test func `have a connection of their own, which is not kept`() async throws {
        let pair = try Pair(isSecure: false) { _, _ in .respond }
        for number in 1...3 {
            #expect(await pair.send("/\(number)", isRepeatable: false))
            #expect(pair.server.connections == number)
        }
        try await pair.keepConnection()
        try await pair.keepConnection()
        #expect(pair.server.connections == 4)
        pair.fetcher.shutdown()
    }

    /// `MARTLET_SINGLE_USE_REQUESTS` says how many.
    @Test(arguments: [false, true])
    func `arrive at most once while connections end at random`(isSecure: Bool) async throws {
        let total = ProcessInfo.processInfo.environment["MARTLET_SINGLE_USE_REQUESTS"].flatMap(Int.init) ?? 200
        let pair = try Pair(isSecure: isSecure) { target, _ in
            target == "/warm" && Int.random(in: 0..<4) > 0
                ? .respond : CuttingServer.Ending.allCases.randomElement() ?? .reset
        }
        var answered = 0
        for batch in stride(from: 0, to: total, by: 16) {
            answered += await withTaskGroup(of: Bool.self) { group in
                for number in batch..<min(batch + 16, total) {
                    group.addTask {
                        // Kept connections come and go beside them.
                        if number % 4 == 0 { _ = await pair.send("/warm", isRepeatable: true) }
                        return await pair.send("/code?code=\(number)", isRepeatable: false)
                    }
                }
                return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
            }
        }
        pair.fetcher.shutdown()
        let counts = pair.server.arrivals.filter { $0.key.hasPrefix("/code") }
        #expect(counts.count == total && counts.values.allSatisfy { $0 == 1 }, "\(counts.filter { $0.value > 1 })")
        #expect(answered > 0 && answered < total)
        print(
            "\(total) single-use requests, TLS \(isSecure): \(answered) answered, most arrivals of one "
                + "\(counts.values.max() ?? 0)")
    }
}
