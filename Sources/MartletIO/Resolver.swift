private import CLinux
package import MartletCore
private import Synchronization

/// Why a host name has no address.
package struct ResolveError: Error, Sendable, CustomStringConvertible {
    package let code: ErrorCode
    package let message: String

    package var description: String { "\(message) [\(code)]" }

    static let stopped = ResolveError(code: "resolver.stopped", message: "the resolver has stopped")
    static let overloaded = ResolveError(code: "resolver.overloaded", message: "too many names wait to be resolved")
    static let nameInvalid = ResolveError(code: "resolver.name_invalid", message: "the host name is malformed")
}

/// `getaddrinfo` on one thread of its own, with a bounded queue; no caller ever blocks.
///
/// An address literal is answered at once. A name may take as long as the system's resolver takes: callers set the
/// deadline and ignore what comes later.
package final class Resolver: Sendable {
    /// What a question comes to.
    package typealias Answer = Result<[SocketEndpoint], ResolveError>

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

    /// All stream addresses of a host, in the system's order of preference.
    package func resolve(host: String, port: UInt16) async throws(ResolveError) -> [SocketEndpoint] {
        let answer = await withCheckedContinuation { continuation in
            resolve(host: host, port: port) { continuation.resume(returning: $0) }
        }
        return try answer.get()
    }

    /// The same with a callback, which runs once, on any thread, and must not block.
    package func resolve(host: String, port: UInt16, _ completion: @escaping @Sendable (Answer) -> Void) {
        if let literal = SocketEndpoint(literal: host, port: port) { return completion(.success([literal])) }
        guard !host.isEmpty, host.utf8.count <= 253, !host.utf8.contains(0) else {
            return completion(.failure(.nameInvalid))
        }
        if let refusal = queue.add(ResolverQueue.Question(host: host, port: port, completion: completion)) {
            completion(.failure(refusal))
        }
    }

    /// Answers what waits with `resolver.stopped` and ends the thread after the name it is at; does not wait for it.
    package func shutdown() { queue.stop() }
}

/// The questions that wait, shared between the askers and the thread.
private final class ResolverQueue: Sendable {
    struct Question: Sendable {
        let host: String
        let port: UInt16
        let completion: @Sendable (Resolver.Answer) -> Void
    }

    private struct State {
        var questions: [Question] = []
        var isStopped = false
    }

    private let capacity: Int
    private let state = Mutex(State())
    private let signal: Int32

    init(capacity: Int) {
        self.capacity = capacity
        signal = eventfd(0, Int32(EFD_CLOEXEC | EFD_SEMAPHORE))
    }

    deinit { if signal >= 0 { close(signal) } }

    /// - Returns: why the question was not taken.
    func add(_ question: Question) -> ResolveError? {
        let refusal: ResolveError? = state.withLock { state in
            guard !state.isStopped, signal >= 0 else { return .stopped }
            guard state.questions.count < capacity else { return .overloaded }
            state.questions.append(question)
            return nil
        }
        if refusal == nil { _ = eventfd_write(signal, 1) }
        return refusal
    }

    func stop() {
        let abandoned = state.withLock { state in
            state.isStopped = true
            let questions = state.questions
            state.questions = []
            return questions
        }
        for question in abandoned { question.completion(.failure(.stopped)) }
        _ = eventfd_write(signal, 1)
    }

    /// The thread: one question after the other until it is stopped.
    func serve() {
        while true {
            var ticket: eventfd_t = 0
            guard unsafe eventfd_read(signal, &ticket) == 0 || martlet_errno() == EINTR else { return }
            let (question, isStopped) = state.withLock { state in
                (state.questions.isEmpty ? nil : state.questions.removeFirst(), state.isStopped)
            }
            if let question { question.completion(lookUp(question.host, question.port)) }
            if isStopped { return }
        }
    }
}

private func lookUp(_ host: String, _ port: UInt16) -> Resolver.Answer {
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
