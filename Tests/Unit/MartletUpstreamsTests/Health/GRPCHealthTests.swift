import Testing

@testable import MartletUpstreams

@Suite struct `The reply of a health service` {
    static let messages: [([UInt8], UInt64?)] = [
        ([], nil), ([0], nil), ([0, 0, 0, 0], nil),
        ([0, 0, 0, 0, 0], 0), ([0, 0, 0, 0, 2, 8, 1], 1), ([0, 0, 0, 0, 2, 8, 2], 2),
        // Compressed, too short, too long, a second message.
        ([1, 0, 0, 0, 2, 8, 1], nil), ([0, 0, 0, 0, 3, 8, 1], nil), ([0, 0, 0, 0, 1, 8, 1], nil),
        ([0, 0, 0, 0, 2, 8, 1, 0, 0, 0, 0, 2, 8, 1], nil), ([0, 255, 255, 255, 255, 8, 1], nil),
        // Other fields beside it.
        ([0, 0, 0, 0, 7, 18, 3, 1, 2, 3, 8, 1], 1), ([0, 0, 0, 0, 7, 21, 1, 2, 3, 4, 8, 1], 1),
        ([0, 0, 0, 0, 11, 17, 1, 2, 3, 4, 5, 6, 7, 8, 8, 1], 1), ([0, 0, 0, 0, 4, 16, 9, 8, 1], 1),
        // The last one counts, and a number may be long.
        ([0, 0, 0, 0, 4, 8, 2, 8, 1], 1), ([0, 0, 0, 0, 3, 8, 0x81, 0], 1),
        // Cut off, unknown kinds, numbers without end.
        ([0, 0, 0, 0, 1, 8], nil), ([0, 0, 0, 0, 2, 18, 3], nil), ([0, 0, 0, 0, 2, 21, 1], nil),
        ([0, 0, 0, 0, 2, 11, 1], nil),
        ([0, 0, 0, 0, 12, 8, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255], nil),
    ]

    @Test(arguments: messages) func `the serving status in a body`(_ body: [UInt8], status: UInt64?) {
        #expect(GRPCHealth.servingStatus(body) == status)
    }

    static let results: [(Int, String?, [UInt8], ProbeResult)] = [
        (200, "0", [0, 0, 0, 0, 2, 8, 1], .success("SERVING")),
        (200, "0", [0, 0, 0, 0, 2, 8, 2], .failure("NOT_SERVING")),
        (200, "0", [0, 0, 0, 0, 0], .failure("UNKNOWN")),
        (200, "0", [0, 0, 0, 0, 2, 8, 9], .failure("serving status 9")),
        (200, "0", [], .failure("malformed HealthCheckResponse")),
        (200, "12", [0, 0, 0, 0, 2, 8, 1], .failure("grpc-status 12")),
        (200, "00", [0, 0, 0, 0, 2, 8, 1], .failure("grpc-status 00")),
        (200, nil, [0, 0, 0, 0, 2, 8, 1], .failure("no grpc-status")),
        (503, "0", [0, 0, 0, 0, 2, 8, 1], .failure("status 503")),
    ]

    @Test(arguments: results) func `a health service serves with status 0 and SERVING alone`(
        _ status: Int, grpcStatus: String?, body: [UInt8], result: ProbeResult
    ) {
        let trailer = grpcStatus.map { "GRPC-Status: \($0)\r\n" } ?? ""
        let head = Array("HTTP/2 200 \r\n\r\n\(trailer)".utf8)
        #expect(GRPCHealth.result(status: status, head: head, body: body) == result)
    }
}
