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
    /// The level of all loggers; a reload may change it.
    let logThreshold: LogThreshold
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
        logThreshold = LogThreshold(level)
        logger = Logger(sink, threshold: logThreshold)
        connections = ConnectionLimit()
        verifier = Verifier(threads: Services.coreCount, clock: clock)
        handshakes = WorkPool(
            name: "martlet-tls", threads: Services.coreCount, queue: Services.handshakesWaiting,
            perMember: Services.handshakesWaiting / 4, perGroup: Services.handshakesWaiting / 2, niceness: 5,
            clock: clock)
        hashing = WorkPool(
            name: "martlet-hash", threads: Services.coreCount, queue: Services.hashesWaiting,
            perMember: Services.hashesWaiting / 4, perGroup: Services.hashesWaiting / 2, niceness: 10, clock: clock)
        do {
            loop = try EventLoop(name: "martlet-io")
            resolver = try Resolver()
            fetcher = try HTTPFetcher()
        } catch {
            throw StartError(code: "server.threads_unavailable", message: "\(error)", exit: .internalFault)
        }
    }

    /// Hashes that may wait for a thread, a quarter of them for one address (IPv6: one /64) and half for one /24 (/48); more
    /// logins are told to come back.
    private static let hashesWaiting = 256

    /// Handshakes that may wait for a thread, divided as hashes are; more are refused.
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
            let response = try await fetcher.get(
                url, for: .issuerKeys, timeout: timeout, maximumBytes: maximumBytes)
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

/// libcurl as one provider's way to other services.
struct HTTPCaller: HTTPCalling {
    let fetcher: HTTPFetcher
    /// The provider's name.
    let provider: String

    func send(_ call: HTTPCall) async throws(HTTPCallError) -> HTTPAnswer {
        do throws(FetchFailure) {
            return HTTPAnswer(try await fetcher.send(FetchRequest(call), for: .provider(provider)))
        } catch {
            throw HTTPCallError(error)
        }
    }

    func reserve(within limit: Duration) async throws(HTTPCallError) -> any HTTPCalling {
        do throws(FetchFailure) {
            return ReservedCaller(
                fetcher: fetcher, slot: try await fetcher.reserve(.provider(provider), within: limit))
        } catch {
            throw HTTPCallError(error)
        }
    }
}

/// The same in a slot that is already there.
private struct ReservedCaller: HTTPCalling {
    let fetcher: HTTPFetcher
    let slot: FetchSlot

    func send(_ call: HTTPCall) async throws(HTTPCallError) -> HTTPAnswer {
        do throws(FetchFailure) {
            return HTTPAnswer(try await fetcher.send(FetchRequest(call), in: slot))
        } catch {
            throw HTTPCallError(error)
        }
    }
}

extension FetchRequest {
    fileprivate init(_ call: HTTPCall) {
        let content: Content =
            switch call.content {
            case .none: .none
            case .form(let fields): .form(fields)
            }
        self.init(
            call.url, content: content, headers: call.headers, timeout: call.timeout, maximumBytes: call.maximumBytes,
            isRepeatable: call.isRepeatable)
    }
}

extension HTTPAnswer {
    fileprivate init(_ response: FetchResponse) { self.init(status: response.status, body: response.body) }
}

extension HTTPCallError {
    fileprivate init(_ failure: FetchFailure) { self.init(code: failure.code, message: failure.message) }
}
