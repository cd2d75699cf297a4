internal import MartletCore
internal import MartletFetch
internal import MartletIO
internal import MartletJOSE
internal import MartletProvider
internal import MartletProxy

/// What the process has once, whatever the configuration: threads, clients of the outside, the log.
struct Services: Sendable {
    let clock: Clock
    let sink: LogSink
    let logger: Logger
    /// Redis and other cold I/O.
    let loop: EventLoop
    let resolver: Resolver
    let fetcher: HTTPFetcher
    let verifier: Verifier
    let connections: ConnectionLimit
    /// The costly half of TLS handshakes: a flood of them leaves the loops to those who are through.
    let handshakes: WorkPool
    /// Password hashes; they take what the loops leave.
    let hashing: WorkPool

    /// Starts the threads.
    /// - Throws: `StartError` when the system refuses.
    init(sink: LogSink, level: LogLevel) throws(StartError) {
        clock = .system
        self.sink = sink
        logger = Logger(sink, minimum: level)
        connections = ConnectionLimit()
        verifier = Verifier(threads: Services.coreCount, clock: clock)
        handshakes = WorkPool(
            name: "martlet-tls", threads: Services.coreCount, queue: Services.handshakesWaiting, niceness: 5,
            clock: clock)
        hashing = WorkPool(
            name: "martlet-hash", threads: Services.coreCount, queue: Services.hashesWaiting, niceness: 10, clock: clock
        )
        do {
            loop = try EventLoop(name: "martlet-io")
            resolver = try Resolver()
            fetcher = try HTTPFetcher()
        } catch {
            throw StartError(code: "server.threads_unavailable", message: "\(error)", exit: .internalFault)
        }
    }

    /// Hashes that may wait for a thread; more logins are told to come back.
    private static let hashesWaiting = 64

    /// Handshakes that may wait for a thread; more are refused.
    private static let handshakesWaiting = 16_384

    /// Processors that this process may use.
    static var coreCount: Int { max(SystemInformation.usableProcessors, 1) }

    /// Ends the threads.
    func shutdown() {
        verifier.stop()
        handshakes.stop()
        hashing.stop()
        fetcher.shutdown()
        resolver.shutdown()
        loop.shutdown()
    }
}

/// libcurl as the way to an issuer's keys.
struct KeyFetcher: KeyFetching {
    let fetcher: HTTPFetcher

    func fetch(_ url: String, timeout: Duration, maximumBytes: Int) async throws(FetchError) -> [UInt8] {
        do {
            let response = try await fetcher.get(url, timeout: timeout, maximumBytes: maximumBytes)
            guard response.status == 200 else {
                throw FetchError(code: "fetch.status", message: "the answer's status is \(response.status)")
            }
            return response.body
        } catch let failure as FetchFailure {
            throw FetchError(code: failure.code, message: failure.message)
        } catch let error as FetchError {
            throw error
        } catch {
            throw FetchError(code: "fetch.failed", message: "\(error)")
        }
    }
}

/// libcurl as the way to other services.
struct HTTPCaller: HTTPCalling {
    let fetcher: HTTPFetcher

    func send(_ call: HTTPCall) async throws(HTTPCallError) -> HTTPAnswer {
        let content: FetchRequest.Content =
            switch call.content {
            case .none: .none
            case .form(let fields): .form(fields)
            }
        do throws(FetchFailure) {
            let answer = try await fetcher.send(
                FetchRequest(
                    call.url, content: content, headers: call.headers, timeout: call.timeout,
                    maximumBytes: call.maximumBytes))
            return HTTPAnswer(status: answer.status, body: answer.body)
        } catch {
            throw HTTPCallError(code: error.code, message: error.message)
        }
    }
}
