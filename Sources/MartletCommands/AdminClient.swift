private import CLinux
internal import MartletCore
internal import MartletIO
internal import MartletServer

/// A minimal HTTP client for the admin listener: one request per connection, with a timeout.
struct AdminClient {
    struct Response {
        let status: Int
        let body: [UInt8]
    }

    private static let responseLimit = 256 * 1024

    private let endpoint: SocketEndpoint
    private let deadline: MonotonicTime

    init(_ endpoint: SocketEndpoint, timeout: Duration) {
        self.endpoint = endpoint
        deadline = Clock.system.monotonicTime + timeout
    }

    /// - Parameters:
    ///   - method: `GET` or `POST`.
    ///   - json: the body of a POST.
    /// - Throws: `server.not_running` if the connection is refused, `server.not_answering` without a complete response
    ///   in time.
    func request(_ target: String, method: String = "GET", json: [UInt8] = []) throws(StartError) -> Response {
        guard let (fd, pending) = try? Socket.connect(to: endpoint) else { throw notRunning }
        defer { close(fd) }
        if pending {
            try wait(fd, POLLOUT)
            guard Socket.pendingError(fd) == 0, martlet_is_connected(fd) == 1 else { throw notRunning }
        }
        let type = json.isEmpty ? "" : "Content-Type: application/json\r\n"
        let length = method == "GET" ? "" : "\(type)Content-Length: \(json.count)\r\n"
        let head = "\(method) \(target) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\(length)\r\n"
        try send(Array(head.utf8) + json, fd)
        guard let response = AdminClient.parse(try receive(fd)) else { throw notResponding }
        return response
    }

    private var notRunning: StartError {
        StartError(code: "server.not_running", message: "no gateway is listening on \(endpoint)", exit: .unavailable)
    }

    private var notResponding: StartError {
        StartError(
            code: "server.not_answering", message: "no valid response from \(endpoint) in time", exit: .unavailable)
    }

    private func wait(_ fd: Int32, _ event: Int32) throws(StartError) {
        while true {
            let left = deadline.since(Clock.system.monotonicTime).wholeMilliseconds
            guard left > 0 else { throw notResponding }
            var waiting = pollfd(fd: fd, events: Int16(event), revents: 0)
            let count = unsafe poll(&waiting, 1, Int32(clamping: left))
            if count > 0 { return }
            if count < 0, martlet_errno() != EINTR { throw notResponding }
        }
    }

    private func send(_ bytes: [UInt8], _ fd: Int32) throws(StartError) {
        var rest = bytes[...]
        while !rest.isEmpty {
            try wait(fd, POLLOUT)
            let count = unsafe rest.withUnsafeBytes {
                unsafe CLinux.send(fd, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard count >= 0 else {
                if martlet_errno() == EAGAIN || martlet_errno() == EINTR { continue }
                throw notResponding
            }
            rest = rest.dropFirst(count)
        }
    }

    private func receive(_ fd: Int32) throws(StartError) -> [UInt8] {
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 16 * 1024)
        while bytes.count < AdminClient.responseLimit {
            try wait(fd, POLLIN)
            let count = unsafe chunk.withUnsafeMutableBytes { unsafe read(fd, $0.baseAddress, $0.count) }
            if count == 0 { return bytes }
            guard count > 0 else {
                if martlet_errno() == EAGAIN || martlet_errno() == EINTR { continue }
                throw notResponding
            }
            bytes += chunk.prefix(count)
        }
        throw notResponding
    }

    /// Parses a response whose body ends with the connection.
    static func parse(_ bytes: [UInt8]) -> Response? {
        let prefix = Array("HTTP/1.1 ".utf8)
        guard bytes.starts(with: prefix),
            let status = Int(String(decoding: bytes.dropFirst(prefix.count).prefix(3), as: UTF8.self)),
            (100..<600).contains(status)
        else { return nil }
        let blank = Array("\r\n\r\n".utf8)
        let end = bytes.indices.first { bytes[$0...].starts(with: blank) }
        return end.map { Response(status: status, body: Array(bytes[($0 + blank.count)...])) }
    }
}
