private import CLinux
internal import MartletIO

enum Probe {
    /// Whether a connection can be established within two seconds.
    static func connects(to address: SocketEndpoint) async -> Bool {
        guard let (fd, pending) = try? Socket.connect(to: address) else { return false }
        defer { close(fd) }
        guard pending else { return true }
        for _ in 0..<200 {
            var waiting = pollfd(fd: fd, events: Int16(POLLOUT), revents: 0)
            if unsafe poll(&waiting, 1, 0) > 0 {
                return Socket.pendingError(fd) == 0 && waiting.revents & Int16(POLLHUP | POLLERR) == 0
            }
            try? await Task.sleep(for: .milliseconds(10))
        }
        return false
    }
}
