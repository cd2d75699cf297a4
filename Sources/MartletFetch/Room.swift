package import MartletCore
private import Glibc

// Stands here until the real client lands: a blocking GET over plain HTTP to a loopback address.
package struct FetchFailure: Error {
    package let code: ErrorCode
    package let message: String
}
package struct FetchResponse: Sendable {
    package let status: Int
    package let body: [UInt8]
}
package final class HTTPFetcher: Sendable {
    package init() throws(FetchFailure) {}
    package func shutdown() {}
    package func get(_ url: String, timeout: Duration, maximumBytes: Int) async throws(FetchFailure) -> FetchResponse {
        let failure = FetchFailure(code: "fetch.failed", message: "no answer")
        guard url.hasPrefix("http://127.0.0.1:") else { throw failure }
        let rest = url.dropFirst("http://127.0.0.1:".count)
        let port = UInt16(rest.prefix { $0.isNumber }) ?? 0
        let path = String(rest.drop { $0.isNumber })
        let fd = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(fd) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let connected = unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { unsafe connect(fd, $0, 16) }
        }
        guard connected == 0 else { throw failure }
        let request = "GET \(path) HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n"
        _ = unsafe write(fd, request, request.utf8.count)
        var answer: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 65536)
        while true {
            let count = unsafe read(fd, &chunk, chunk.count)
            if count <= 0 { break }
            answer += chunk[..<count]
        }
        let text = String(decoding: answer, as: UTF8.self)
        guard let end = text.firstRange(of: "\r\n\r\n") else { throw failure }
        let status = Int(text.dropFirst(9).prefix(3)) ?? 0
        return FetchResponse(status: status, body: Array(text[end.upperBound...].utf8))
    }
}
