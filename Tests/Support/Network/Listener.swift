import Foundation
internal import Glibc
import Synchronization

/// A listening socket.
package final class Listener: Sendable {
    private let descriptor: Int32
    private let closed = Atomic<Bool>(false)
    package let endpoint: Endpoint

    /// Listens; port 0 lets the kernel choose, and ``endpoint`` says what it chose.
    /// - Parameter backlog: how many connections may wait to be accepted.
    package init(on wanted: Endpoint, backlog: Int32 = 512) throws {
        let descriptor = try openSocket(for: wanted)
        self.descriptor = descriptor
        if case .tcp = wanted {
            var on: Int32 = 1
            unsafe setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, socklen_t(MemoryLayout<Int32>.size))
        }
        let bound = try unsafe withSocketAddress(wanted) { unsafe bind(descriptor, $0, $1) }
        guard bound == 0, listen(descriptor, backlog) == 0 else {
            throw TestFailure("listen on \(wanted): \(errorText())")
        }
        switch wanted {
        case .tcp(let host, _): endpoint = .tcp(host: host, port: boundPort(of: descriptor))
        case .unix: endpoint = wanted
        }
    }

    deinit { _ = Glibc.close(descriptor) }

    /// The next connection; `nil` once the listener is closed.
    package func accept(within limit: Duration = .seconds(3600)) -> RawSocket? {
        let deadline = Deadline(in: limit)
        while !closed.load(ordering: .acquiring), !deadline.hasPassed {
            guard pollOnce(descriptor, POLLIN, until: Deadline(in: .milliseconds(100))) else { continue }
            let accepted = Glibc.accept(descriptor, nil, nil)
            if accepted >= 0 {
                _ = fcntl(accepted, F_SETFD, FD_CLOEXEC)
                let socket = RawSocket(descriptor: accepted)
                socket.noDelay()
                return socket
            }
        }
        return nil
    }

    /// Stops listening; whoever connects now is refused.
    ///
    /// The descriptor itself lives as long as the listener: a thread that waits in ``accept(within:)`` must not find
    /// another socket under its number.
    package func close() {
        guard !closed.exchange(true, ordering: .acquiringAndReleasing) else { return }
        _ = shutdown(descriptor, Int32(SHUT_RDWR))
    }
}
