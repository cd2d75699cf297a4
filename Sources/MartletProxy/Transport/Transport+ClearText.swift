internal import CLinux
internal import Glibc
internal import MartletDecisions

extension Transport {
    /// What a client gets that has sent a request in clear text to a port with TLS (RFC 9110 §15.5.1).
    private static let clearTextResponse: StaticString = """
        HTTP/1.1 400 Bad Request\r
        Content-Type: application/problem+json\r
        Cache-Control: no-store\r
        Content-Length: 146\r
        Connection: close\r
        \r
        {"type":"urn:martlet:problem:request_invalid","title":"Bad Request","status":400,\
        "code":"request_invalid","detail":"This port takes https only."}\n
        """

    /// Responds in clear text to a request that is no TLS handshake, before the connection is closed. What the kernel
    /// does not accept is left out.
    @inline(never)
    func rejectClearText() {
        let response = Self.clearTextResponse
        _ = unsafe martlet_send(fd, response.utf8Start, response.utf8CodeUnitCount, Int32(MSG_NOSIGNAL))
    }
}
