private import CLinux
internal import MartletCore
internal import MartletIO

/// One request over a connection of its own, waiting for no longer than its patience; for short commands.
struct AdminQuestion {
    struct Answer {
        let status: Int
        let body: [UInt8]
    }

    private static let answerLimit = 256 * 1024

    private let place: SocketEndpoint
    private let deadline: MonotonicTime

    init(_ place: SocketEndpoint, patience: Duration) {
        self.place = place
        deadline = Clock.system.monotonicTime + patience
    }

    /// - Parameter method: `GET`, or `POST` without a body.
    /// - Throws: `server.not_running` when nobody listens, `server.not_answering` when no whole answer comes in time.
    func ask(_ target: String, method: String = "GET") throws(StartError) -> Answer {
        guard let (fd, pending) = try? Socket.connect(to: place) else { throw notRunning }
        defer { close(fd) }
        if pending {
            try wait(fd, POLLOUT)
            guard Socket.pendingError(fd) == 0, martlet_is_connected(fd) == 1 else { throw notRunning }
        }
        let length = method == "GET" ? "" : "Content-Length: 0\r\n"
        let head = "\(method) \(target) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\(length)\r\n"
        try send(Array(head.utf8), fd)
        guard let answer = AdminQuestion.parse(try receive(fd)) else { throw notAnswering }
        return answer
    }

    private var notRunning: StartError {
        StartError(code: "server.not_running", message: "nobody listens on \(place)", exit: .unavailable)
    }

    private var notAnswering: StartError {
        StartError(code: "server.not_answering", message: "no good answer from \(place) in time", exit: .unavailable)
    }

    private func wait(_ fd: Int32, _ event: Int32) throws(StartError) {
        while true {
            let left = deadline.since(Clock.system.monotonicTime).wholeMilliseconds
            guard left > 0 else { throw notAnswering }
            var waiting = pollfd(fd: fd, events: Int16(event), revents: 0)
            let count = unsafe poll(&waiting, 1, Int32(clamping: left))
            if count > 0 { return }
            if count < 0, martlet_errno() != EINTR { throw notAnswering }
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
                throw notAnswering
            }
            rest = rest.dropFirst(count)
        }
    }

    private func receive(_ fd: Int32) throws(StartError) -> [UInt8] {
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 16 * 1024)
        while bytes.count < AdminQuestion.answerLimit {
            try wait(fd, POLLIN)
            let count = unsafe chunk.withUnsafeMutableBytes { unsafe read(fd, $0.baseAddress, $0.count) }
            if count == 0 { return bytes }
            guard count > 0 else {
                if martlet_errno() == EAGAIN || martlet_errno() == EINTR { continue }
                throw notAnswering
            }
            bytes += chunk.prefix(count)
        }
        throw notAnswering
    }

    /// Reads the status and what stands behind the head of an answer that ended with its connection.
    static func parse(_ bytes: [UInt8]) -> Answer? {
        let prefix = Array("HTTP/1.1 ".utf8)
        guard bytes.starts(with: prefix),
            let status = Int(String(decoding: bytes.dropFirst(prefix.count).prefix(3), as: UTF8.self)),
            (100..<600).contains(status)
        else { return nil }
        let blank = Array("\r\n\r\n".utf8)
        let end = bytes.indices.first { bytes[$0...].starts(with: blank) }
        return end.map { Answer(status: status, body: Array(bytes[($0 + blank.count)...])) }
    }
}
