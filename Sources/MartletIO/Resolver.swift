private import CLinux
package import MartletCore

/// Why a host name could not be resolved.
package struct ResolveError: CodedError {
    package let code: ErrorCode
    package let message: String

    static let stopped = ResolveError(code: "resolver.stopped", message: "the resolver has stopped")
    static let overloaded = ResolveError(code: "resolver.overloaded", message: "the resolver queue is full")
    static let nameInvalid = ResolveError(code: "resolver.name_invalid", message: "the host name is invalid")
}

/// `getaddrinfo` on its own thread, with a bounded queue; callers never block.
///
/// An address literal is resolved immediately. A name may take as long as the system's resolver takes: callers set a
/// deadline and ignore later results.
package final class Resolver: Sendable {
    /// The result of a lookup.
    package typealias Response = Result<[SocketEndpoint], ResolveError>

    private static let queueCapacity = 256

    private let queue: ResolverQueue
    private let thread: SystemThread

    /// Starts the thread.
    package init(name: String = "martlet-resolve") throws(IOError) {
        let queue = ResolverQueue(capacity: Resolver.queueCapacity)
        self.queue = queue
        do {
            thread = try SystemThread(name: name) { queue.serve() }
        } catch {
            throw IOError("pthread_create", errno: error.errno)
        }
    }

    deinit { queue.stop() }

    /// Resolves a host to all its stream addresses, in the system's order of preference.
    package func resolve(host: String, port: UInt16) async throws(ResolveError) -> [SocketEndpoint] {
        let response = await withCheckedContinuation { continuation in
            resolve(host: host, port: port) { continuation.resume(returning: $0) }
        }
        return try response.get()
    }

    /// Resolves a host; `completion` is called once, on any thread, and must not block.
    package func resolve(host: String, port: UInt16, _ completion: @escaping @Sendable (Response) -> Void) {
        if let literal = SocketEndpoint(literal: host, port: port) { return completion(.success([literal])) }
        guard !host.isEmpty, host.utf8.count <= 253, !host.utf8.contains(0) else {
            return completion(.failure(.nameInvalid))
        }
        if let error = queue.add(ResolverQueue.Query(host: host, port: port, completion: completion)) {
            completion(.failure(error))
        }
    }

    /// Fails queued queries with `resolver.stopped`; the thread ends after its current query, which is not waited for.
    package func shutdown() { queue.stop() }
}

/// The queued queries, shared between the callers and the thread.
private final class ResolverQueue: Sendable {
    struct Query: Sendable {
        let host: String
        let port: UInt16
        let completion: @Sendable (Resolver.Response) -> Void
    }

    private struct State {
        var queries: [Query] = []
        var isStopped = false
    }

    private let capacity: Int
    private let state = Lock(State())
    private let signal = ThreadSignal()

    init(capacity: Int) { self.capacity = capacity }

    /// - Returns: the error if the query was not queued.
    func add(_ query: Query) -> ResolveError? {
        let error: ResolveError? = state.withLock { state in
            guard !state.isStopped else { return .stopped }
            guard state.queries.count < capacity else { return .overloaded }
            state.queries.append(query)
            return nil
        }
        if error == nil { signal.wake() }
        return error
    }

    func stop() {
        let abandoned = state.withLock { state in
            state.isStopped = true
            let queries = state.queries
            state.queries = []
            return queries
        }
        for query in abandoned { query.completion(.failure(.stopped)) }
        signal.wake()
    }

    /// The thread's body: resolves one name after the other until the queue is stopped.
    func serve() {
        while true {
            signal.wait()
            let (query, isStopped) = state.withLock { state in
                (state.queries.isEmpty ? nil : state.queries.removeFirst(), state.isStopped)
            }
            if let query { query.completion(lookUp(query.host, query.port)) }
            if isStopped { return }
        }
    }
}

private func lookUp(_ host: String, _ port: UInt16) -> Resolver.Response {
    var hints = unsafe addrinfo()
    unsafe hints.ai_family = AF_UNSPEC
    unsafe hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    unsafe hints.ai_flags = AI_NUMERICSERV
    var list: UnsafeMutablePointer<addrinfo>?
    let status = unsafe getaddrinfo(host, String(port), &hints, &list)
    defer { unsafe list.map { unsafe freeaddrinfo($0) } }
    guard status == 0 else {
        let reason = unsafe String(cString: gai_strerror(status))
        return .failure(ResolveError(code: "resolver.name_unknown", message: "'\(host)': \(reason)"))
    }
    var endpoints: [SocketEndpoint] = []
    var next = unsafe list
    while let entry = unsafe next {
        let address = unsafe UnsafeRawBufferPointer(start: entry.pointee.ai_addr, count: Int(entry.pointee.ai_addrlen))
        endpoints.append(SocketEndpoint(sockaddr: unsafe Array(address)))
        unsafe next = entry.pointee.ai_next
    }
    guard !endpoints.isEmpty else {
        return .failure(ResolveError(code: "resolver.name_unknown", message: "'\(host)' has no address"))
    }
    return .success(endpoints)
}
