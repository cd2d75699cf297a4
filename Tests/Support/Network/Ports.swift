private let taken = Box<Set<UInt16>>([])

/// A port without a listener: a connection to it is refused, and a program may be configured to listen there.
///
/// It is below the range that the kernel gives to outgoing connections, and nothing else in this process gets it.
package func refusedPort() throws -> UInt16 {
    for _ in 0..<1000 {
        let port = UInt16.random(in: 20_000..<32_000)
        guard taken.withLock({ $0.insert(port).inserted }) else { continue }
        if let listener = try? Listener(on: .loopback(port)) {
            listener.close()
            return port
        }
    }
    throw TestFailure("no free port")
}
